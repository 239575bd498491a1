// FunctionDef, the stored form of functions, in and out: TensorFlow's, byte-compatible.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "framework/base/status.h"
#include "framework/graph/function.h"

namespace thalweg {

// The same function gives the same bytes. Its arguments and results get names that a FunctionDef may have.
StatusOr<std::string> ExportFunctionDef(const Function& f);

// The name of a stored function. Errors: INVALID_ARGUMENT for damaged bytes.
StatusOr<std::string> FunctionName(std::string_view function_def);

// body: empty, of the graph whose nodes are to call it (Graph::Body). Errors: INVALID_ARGUMENT for damaged bytes, naming function, node and
// input; UNIMPLEMENTED for a function with attributes or lists of arguments of its own; those of ImportGraphDef.
StatusOr<std::shared_ptr<const Function>> ImportFunctionDef(std::string_view function_def, std::shared_ptr<Graph> body);

}  // namespace thalweg
