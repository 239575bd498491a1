// Branches and loops made of Switch, Merge, Enter, Exit and NextIteration as If and While, so that they can be differentiated
// (function_gradient.h). Nodes are added beside those that are there, which go on running wherever no gradient is asked for
// (Graph::Replace). What lies within a branch or loop goes into the body as it is, and gets its form when the body is differentiated.
// Threads: one at a time per graph.
#pragma once
#include <vector>

#include "framework/base/status.h"
#include "framework/graph/graph.h"

namespace thalweg {

// Sees to it that everything that leaves branches and loops on the way to ys has a form. xs: for messages, since what lies inside a branch
// or loop is nothing to differentiate by. Errors: UNIMPLEMENTED and INVALID_ARGUMENT for what is neither a condition nor a loop, naming a
// node.
Status AddFunctionalForms(Graph* graph, const std::vector<Edge>& ys, const std::vector<Edge>& xs);

// The value that gradients look at: its form, or itself.
inline Edge FormOf(const Graph& graph, const Edge& e) {
  const Edge by = graph.ReplacedBy(e);
  return by ? by : e;
}

}  // namespace thalweg
