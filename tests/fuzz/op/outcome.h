// What becomes of a use, run in one of several ways.
#pragma once
#include <string>
#include <vector>

#include "tests/fuzz/op/use.h"

namespace thalweg::fuzz {

// How the inputs of a use come in, and what is around it.
struct Way {
  enum class Entry { kFed, kPartly, kConstant };  // of unknown rank; as far as `known` says, behind another op; all that there is to know
  const char* name;
  Entry entry;
  bool neighbours;  // others read the same values and the results; an equal node runs beside it
  bool imported;    // the graph goes through GraphDef
  std::vector<const char*> options;
  class Lender* lender = nullptr;  // gives what is fed its memory, where there is one, and runs the op as often as it likes
};

struct Outcome {
  uint32_t code = TW_OK;
  std::string message;
  std::vector<Tensor> results;  // the outputs, then what variables hold afterwards
  size_t outputs = 0;           // of the results
  bool ok() const { return code == TW_OK; }
  // It failed for want of memory, time or a kernel, which the optimizer may do without.
  bool limited() const {
    return code == TW_RESOURCE_EXHAUSTED || code == TW_DEADLINE_EXCEEDED || message.find("no kernel for") != message.npos;
  }
};

// Whatever goes wrong that no input may bring about ends the process.
Outcome Run(tw_runtime* runtime, const Use& use, const Way& way);

}  // namespace thalweg::fuzz
