// Converts branches and loops made of Switch, Merge, Enter, Exit and NextIteration to If and While,
// so that they can be differentiated (function_gradient.h). The new nodes are added beside the
// existing ones, which still run in plans that need no gradient (Graph::Replace). Branches and
// loops inside a body are copied unchanged, and converted when the body is differentiated.
// Threads: one at a time per graph.
#pragma once
#include <vector>

#include "framework/base/status.h"
#include "framework/graph/graph.h"

namespace thalweg {

// Converts all branches and loops on the paths to ys. xs: to report an x inside a branch or loop,
// which cannot be differentiated by. Errors: UNIMPLEMENTED and INVALID_ARGUMENT, naming a node, for
// control flow that is neither a condition nor a loop.
Status AddFunctionalForms(Graph* graph, const std::vector<Edge>& ys, const std::vector<Edge>& xs);

// Returns the value that gradients are built from: the form of e, or e itself.
inline Edge FormOf(const Graph& graph, const Edge& e) {
  const Edge by = graph.ReplacedBy(e);
  return by ? by : e;
}

}  // namespace thalweg
