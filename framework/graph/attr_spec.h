// Parses one attribute of a schema: `A: KIND [>= n] [= default] [since minor]` (plugin/op.h). Also
// implements CheckAttr of op_schema.h. Threads: any.
#pragma once
#include <string>

#include "framework/base/scanner.h"
#include "framework/graph/op_schema.h"

namespace thalweg {

// Reads from the colon behind the name on. The scanner keeps the error, if there is one; the result
// is then meaningless.
AttrSpec ReadAttrSpec(std::string name, Scanner* in);

}  // namespace thalweg
