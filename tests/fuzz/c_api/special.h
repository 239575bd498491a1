// How the program calls an exported function: by its types, unless SPECIAL says otherwise.
#pragma once
#include "tests/fuzz/c_api/draw.h"

namespace thalweg::fuzz {

template <auto kFunction>
void Run(Program& p) {
  CallByTypes(p, kFunction);
}

// The head of the lines that call `function`. They must be visible where calls.cc lists the functions.
#define SPECIAL(function) \
  template <>             \
  inline void Run<&function>(Program & p)

}  // namespace thalweg::fuzz
