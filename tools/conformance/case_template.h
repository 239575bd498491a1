// CaseTemplate writes a case of an op for the author to fill in. It has everything that the schema
// requires, with values that the op may refuse.
// Threads: any.
#pragma once
#include <string>

#include "framework/graph/op_schema.h"

namespace thalweg::conformance {

// Returns one case as JSON on one line: {"attrs": {"shared_name": "text"}, "inputs": [{"dtype": "float", "shape": [2, 3], "range": [-1,
// 1]}]}
std::string CaseTemplate(const OpSchema& op);

}  // namespace thalweg::conformance
