// Infers shapes of nodes that call functions from those functions. Threads: any.
#pragma once
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/graph/function.h"

namespace thalweg {

// Returns true if the op calls functions in a way that the framework knows by its role: If, Case,
// While, For and calls.
bool CallsFunctions(const OpSchema& op);

// Returns the op's role without "stateless_", because ops with and without state are handled alike.
std::string_view CallRole(const OpSchema& op);

// For a node whose op calls functions: merges the output shapes that hold for any input into
// *shapes, which has one entry per output. A function that the library does not have, such as a
// recursive one that is still to be added, contributes nothing. INVALID_ARGUMENT if a function's
// arguments or results do not match the node.
Status AskFunctions(FunctionLibrary* library, const Node& node, std::vector<Shape>* shapes);

}  // namespace thalweg
