// What a bomb is, for the files that make them: bombs_test.cc meets them all.
#pragma once
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "thalweg/status.h"

namespace thalweg::fuzz {

struct Bomb {
  const char* name;
  std::function<std::string()> make;                    // its bytes
  const char* says;                                     // part of the refusal; NULL: harmless, and therefore accepted
  std::function<std::string(const std::string&)> meet;  // answers the refusal
};

inline void PrintTo(const Bomb& bomb, std::ostream* out) { *out << bomb.name; }

// Code and message of a failure, which is released; "" for success.
inline std::string Told(tw_status* s) {
  const std::string text = s ? std::string(tw_status_code_name(tw_status_code(s))) + ": " + tw_status_message(s) : "";
  tw_status_release(s);
  return text;
}

// Index files whose blocks unfold to far more than they are, or are named again and again.
std::vector<Bomb> CheckpointBombs();

}  // namespace thalweg::fuzz
