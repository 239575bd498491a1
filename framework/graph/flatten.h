// Flattening: copies what some values need into a graph without calls of functions. Threads: as Graph.
#pragma once
#include <memory>
#include <vector>

#include "framework/base/status.h"
#include "framework/graph/graph.h"

namespace thalweg {

struct FlatGraph {
  std::shared_ptr<Graph> graph;       // a body of the graph that was flattened
  std::vector<Edge> inputs, outputs;  // of `graph`, in the order of the arguments
};

// Copies the nodes that `outputs` need by values and `inputs` do not; inputs become placeholders. Calls become the nodes of their
// functions, conditions whose choice is known the nodes of the chosen branch, placeholders with a default that default, and known values
// constants. Nodes of functions have the name of the call in front of theirs. Effects that no value shows, and control inputs, are left
// out. INVALID_ARGUMENT for control flow in the form of Switch and Merge, for references and for functions that call themselves without
// end.
StatusOr<FlatGraph> Flatten(const Graph& graph, const std::vector<Edge>& inputs, const std::vector<Edge>& outputs);

}  // namespace thalweg
