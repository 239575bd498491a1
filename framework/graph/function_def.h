// FunctionDef, the stored form of functions, in and out: TensorFlow's, byte-compatible.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "framework/base/status.h"
#include "framework/graph/function.h"

namespace thalweg {

// The same function gives the same bytes. Its arguments and results get names that a FunctionDef may have.
StatusOr<std::string> ExportFunctionDef(const Function& f);

// For each function of a serialised FunctionDefLibrary. Errors: INVALID_ARGUMENT for damaged bytes; those of `each`.
Status ForEachFunction(std::string_view library, const std::function<Status(const std::string& name, std::string_view def)>& each);

// The name of a stored function. Errors: INVALID_ARGUMENT for damaged bytes.
StatusOr<std::string> FunctionName(std::string_view function_def);

// body: empty, of the graph whose nodes are to call it (Graph::Body).   name: what it is to be called; "": as it is stored.
// attrs: values of its attributes; those that have a default may be left out. An argument that stands for several values becomes as many.
// Errors: INVALID_ARGUMENT for damaged bytes, naming function, node and input, and for an attribute without value; those of ImportGraphDef.
StatusOr<std::shared_ptr<const Function>> ImportFunctionDef(std::string_view function_def, std::shared_ptr<Graph> body,
                                                            std::string_view name = "", const AttrMessages& attrs = {});

}  // namespace thalweg
