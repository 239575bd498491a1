// What functions say of the nodes that call them.
#pragma once
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/graph/function.h"

namespace thalweg {

// The op calls functions, and the framework knows how: If, Case, While and calls, by their roles.
bool CallsFunctions(const OpSchema& op);

// What such an op does, whether its functions have state or not: its role without "stateless_".
std::string_view CallRole(const OpSchema& op);

// Of a node whose op calls functions: adds to *shapes, one for each output, what is known of them whatever is fed. A function that the
// library has not, such as one that calls itself and is still to be made, says nothing. Errors: INVALID_ARGUMENT for one that takes or
// gives other values than the node.
Status AskFunctions(FunctionLibrary* library, const Node& node, std::vector<Shape>* shapes);

}  // namespace thalweg
