// Reports violated properties in fuzz targets, and releases statuses.
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "thalweg/status.h"

namespace thalweg::fuzz {

[[noreturn]] inline void Broken(const std::string& what) {
  std::fprintf(stderr, "broken: %s\n", what.c_str());
  std::abort();
}

// Releases a status and returns its code. message: receives the text if not NULL. Whatever the
// input, a failure must have a message, and must not be an internal error of the runtime.
inline uint32_t Take(tw_status* s, std::string* message = nullptr) {
  const uint32_t code = tw_status_code(s);
  if (s && !*tw_status_message(s)) Broken("a failure says nothing");
  if (code == TW_INTERNAL) Broken(tw_status_message(s));
  if (s && message) *message = tw_status_message(s);
  tw_status_release(s);
  return code;
}

// Checks a call that no input may make fail.
inline void Must(tw_status* s, const char* what) {
  if (s) Broken(std::string(what) + ": " + tw_status_message(s));
}

}  // namespace thalweg::fuzz
