// Gradients that a stored graph brings along: GradientDefs of functions, and what its nodes name by `_gradient_op_type`.
// Threads: one at a time per graph.
#pragma once
#include <optional>
#include <string>

#include "framework/autodiff/call_gradient.h"
#include "framework/base/status.h"
#include "framework/graph/function.h"

namespace thalweg {

// Calls the function that gives the gradient. Errors: NOT_FOUND; INVALID_ARGUMENT where it does not fit the node.
Status AddStoredGradient(const CallGradient& c, const StoredGradient& gradient);

// What the node says of its own gradient. Its own op's: empty. Errors: INVALID_ARGUMENT for an attribute that is no text.
StatusOr<std::string> NamedGradient(const Node& node);

}  // namespace thalweg
