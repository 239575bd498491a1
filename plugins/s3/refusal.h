// What an error answer of the store means: its code, its text and whether another attempt may help.
// Threads: any.
#ifndef THALWEG_PLUGINS_S3_REFUSAL_H_
#define THALWEG_PLUGINS_S3_REFUSAL_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "address.h"
#include "answers.h"

namespace thalweg::s3 {

struct Refusal {
  uint32_t code = 0;
  bool again = false;      // the store asks to try again later
  bool stale_key = false;  // another key may be accepted
  std::string text;        // what the store said and what to do; one line
};

// status, error: from the answer. date: its Date header. key_origin: where the key was found.
Refusal Explain(int status, const ErrorText& error, const Address& address, std::string_view date, std::string_view key_origin);

// Returns at most `most` bytes of a text of the store, without control characters.
std::string Shown(std::string_view text, size_t most = 200);

}  // namespace thalweg::s3

#endif  // THALWEG_PLUGINS_S3_REFUSAL_H_
