// Defines Bomb for the files that make bombs; bombs_test.cc runs them all.
#pragma once
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "thalweg/status.h"

namespace thalweg::fuzz {

struct Bomb {
  const char* name;
  std::function<std::string()> make;                    // makes its bytes
  const char* says;                                     // a part of the refusal; NULL: harmless, so it must be accepted
  std::function<std::string(const std::string&)> meet;  // returns the refusal
};

inline void PrintTo(const Bomb& bomb, std::ostream* out) { *out << bomb.name; }

// Returns code and message of a failure, and releases the status; "" for success.
inline std::string Told(tw_status* s) {
  const std::string text = s ? std::string(tw_status_code_name(tw_status_code(s))) + ": " + tw_status_message(s) : "";
  tw_status_release(s);
  return text;
}

// Index files whose blocks decompress to far more than their size, or are referenced repeatedly.
std::vector<Bomb> CheckpointBombs();

}  // namespace thalweg::fuzz
