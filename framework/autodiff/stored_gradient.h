// Gradients that a stored graph contains: GradientDefs of functions, and the gradients that its
// nodes name by `_gradient_op_type`.
// Threads: one at a time per graph.
#pragma once
#include <optional>
#include <string>

#include "framework/autodiff/call_gradient.h"
#include "framework/base/status.h"
#include "framework/graph/function.h"

namespace thalweg {

// Adds a call of the function that computes the gradient. Errors: NOT_FOUND; INVALID_ARGUMENT if it
// does not fit the node.
Status AddStoredGradient(const CallGradient& c, const StoredGradient& gradient);

// Returns the gradient that the node names, or empty for that of its own op. Errors:
// INVALID_ARGUMENT for an attribute that is no text.
StatusOr<std::string> NamedGradient(const Node& node);

}  // namespace thalweg
