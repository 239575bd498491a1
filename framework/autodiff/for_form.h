// Converts a For to a While, so that it can be differentiated (functional_form.h). Threads: one at
// a time per graph.
#pragma once
#include "framework/base/status.h"
#include "framework/graph/graph.h"

namespace thalweg {

// Adds the While beside the For, which still runs in plans that need no gradient (Graph::Replace).
// Errors: NOT_FOUND for a function that the graph does not have; FAILED_PRECONDITION if the graph
// that has the functions is gone.
Status FormFor(Graph* graph, const Node& node);

}  // namespace thalweg
