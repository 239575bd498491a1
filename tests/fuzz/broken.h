// What fuzz targets say when something does not hold, and how they take statuses.
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

// The code of a status, which is released; message: what it says, where that is wanted. Whatever the input was, a failure says something,
// and none is the runtime's own fault.
inline uint32_t Take(tw_status* s, std::string* message = nullptr) {
  const uint32_t code = tw_status_code(s);
  if (s && !*tw_status_message(s)) Broken("a failure says nothing");
  if (code == TW_INTERNAL) Broken(tw_status_message(s));
  if (s && message) *message = tw_status_message(s);
  tw_status_release(s);
  return code;
}

// What no input can make fail.
inline void Must(tw_status* s, const char* what) {
  if (s) Broken(std::string(what) + ": " + tw_status_message(s));
}

}  // namespace thalweg::fuzz
