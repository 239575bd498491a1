// Import and export of FunctionDef, the stored form of functions. Byte-compatible with
// TensorFlow's. Threads: any.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "framework/base/status.h"
#include "framework/graph/function.h"

namespace thalweg {

// Serialises the function; equal functions give equal bytes. Arguments and results get names that
// are legal in a FunctionDef.
StatusOr<std::string> ExportFunctionDef(const Function& f);

// Calls `each` for each function of a serialised FunctionDefLibrary. INVALID_ARGUMENT for damaged
// bytes; the errors of `each`.
Status ForEachFunction(std::string_view library, const std::function<Status(const std::string& name, std::string_view def)>& each);

// Returns the name of a stored function. INVALID_ARGUMENT for damaged bytes.
StatusOr<std::string> FunctionName(std::string_view function_def);

// body: an empty body of the graph whose nodes will call the function (Graph::Body). name: the
// function's name; "" means the stored one. attrs: values of its attributes; attributes with
// defaults may be left out. An argument that stands for several values becomes as many.
// INVALID_ARGUMENT for damaged bytes (names function, node and input) and for an attribute without
// a value; the errors of ImportGraphDef.
StatusOr<std::shared_ptr<const Function>> ImportFunctionDef(std::string_view function_def, std::shared_ptr<Graph> body,
                                                            std::string_view name = "", const AttrMessages& attrs = {});

}  // namespace thalweg
