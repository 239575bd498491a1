// Gradients of nodes that call functions: If, Case, While and calls. A function that is differentiated becomes two: one that gives what the
// function gives and what the gradient wants to know of it (captures), and one that gives the gradient. The node is extended
// (Graph::Extend): in a plan that needs the gradient another node runs in its place that gives the captures too; so nothing runs twice. In
// loops captures are pushed onto lists, from which the backward loop takes them.
// Threads: one at a time per graph.
#pragma once
#include <functional>
#include <vector>

#include "framework/autodiff/autodiff.h"
#include "framework/base/status.h"
#include "framework/graph/graph.h"

namespace thalweg {

// What a node's outputs and inputs have of the gradient that is being built.
struct NodeGradient {
  std::function<bool(int32_t o)> has_dy;           // something arrives at the output
  std::function<StatusOr<Edge>(int32_t o)> dy;     // the sum, dense; zeros where nothing arrives
  std::function<bool(int32_t i)> wants_dx;         // somebody asks for the input's gradient
  std::function<void(int32_t i, Edge values)> dx;  // may be called for inputs that want none
  Keeping keeping;
};

// REQUIRES: CallsFunctions(node.op()). Errors: NOT_FOUND for a function that the graph has not; those of AddGradients in its body.
Status AddFunctionGradient(Graph* graph, const Node& node, const std::string& scope, const NodeGradient& gradient);

}  // namespace thalweg
