// Runs a use in one of several ways and returns its outcome.
#pragma once
#include <string>
#include <vector>

#include "tests/fuzz/op/use.h"

namespace thalweg::fuzz {

// How the inputs of a use are provided, and the graph around it.
struct Way {
  enum class Entry { kFed, kPartly, kConstant };  // with unknown rank; as far as `known` says, behind another op; as constants
  const char* name;
  Entry entry;
  bool neighbours;  // other nodes read the same values and the results; an equal node runs in parallel
  bool imported;    // the graph is exported and imported
  std::vector<const char*> options;
  class Lender* lender = nullptr;  // if set, provides the memory of the feeds and runs the op repeatedly
};

struct Outcome {
  uint32_t code = TW_OK;
  std::string message;
  std::vector<Tensor> results;  // the outputs, then the final values of the variables
  size_t outputs = 0;           // number of outputs in `results`
  bool ok() const { return code == TW_OK; }
  // True if it failed for lack of memory, time or a kernel, which the optimizer may avoid.
  bool limited() const {
    return code == TW_RESOURCE_EXHAUSTED || code == TW_DEADLINE_EXCEEDED || message.find("no kernel for") != message.npos;
  }
};

// Ends the process on any failure that no input may cause.
Outcome Run(tw_runtime* runtime, const Use& use, const Way& way);

}  // namespace thalweg::fuzz
