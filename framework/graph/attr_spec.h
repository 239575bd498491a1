// What a schema says of one attribute: `A: KIND [>= n] [= default] [since minor]` (plugin/op.h), and whether a value keeps to it (CheckAttr
// of op_schema.h).
#pragma once
#include <string>

#include "framework/base/scanner.h"
#include "framework/graph/op_schema.h"

namespace thalweg {

// From the colon behind the name on. What is wrong is kept by the scanner, and the answer is then of no use.
AttrSpec ReadAttrSpec(std::string name, Scanner* in);

}  // namespace thalweg
