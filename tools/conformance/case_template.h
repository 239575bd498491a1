// A case of an op for its author to fill in: all that the schema asks for, with values that may not be those that the op takes.
// Threads: any.
#pragma once
#include <string>

#include "framework/graph/op_schema.h"

namespace thalweg::conformance {

// One case as JSON on one line: {"attrs": {"shared_name": "text"}, "inputs": [{"dtype": "float", "shape": [2, 3], "range": [-1, 1]}]}
std::string CaseTemplate(const OpSchema& op);

}  // namespace thalweg::conformance
