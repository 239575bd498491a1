// Gradients of nodes that call functions: If, Case, While and calls. A differentiated function
// becomes two: one returns the function's results and the values that the gradient reads
// (captures), the other returns the gradient. The node is extended (Graph::Extend): in a plan that
// needs the gradient, another node runs in its place and also returns the captures, so nothing runs
// twice. Loops push captures onto lists, and the backward loop pops them.
// Threads: one at a time per graph.
#pragma once
#include <functional>
#include <vector>

#include "framework/autodiff/autodiff.h"
#include "framework/base/status.h"
#include "framework/graph/graph.h"

namespace thalweg {

// The state of the gradient under construction at a node's outputs and inputs.
struct NodeGradient {
  std::function<bool(int32_t o)> has_dy;           // a gradient arrives at the output
  std::function<StatusOr<Edge>(int32_t o)> dy;     // the sum, dense; zeros if no gradient arrives
  std::function<bool(int32_t i)> wants_dx;         // the input's gradient is wanted
  std::function<void(int32_t i, Edge values)> dx;  // may also be called for inputs whose gradient is not wanted
  Keeping keeping;
};

// REQUIRES: CallsFunctions(node.op()). Errors: NOT_FOUND for a function that the graph does not
// have; those of AddGradients in its body.
Status AddFunctionGradient(Graph* graph, const Node& node, const std::string& scope, const NodeGradient& gradient);

}  // namespace thalweg
