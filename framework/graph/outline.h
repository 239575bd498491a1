// Outlining, the inverse of inlining: turns a part of a graph into a function and adds a node that
// calls it. The nodes of the part stay in the graph; consumers that read the call's outputs instead
// no longer need them. Threads: one at a time per graph.
#pragma once
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/graph/graph.h"

namespace thalweg {

// The part consists of all nodes that the results and targets need and the arguments do not.
struct PartSpec {
  std::string name;                  // of the function
  std::vector<Edge> args;            // values at which the part begins
  std::vector<Edge> results;         // values that it computes
  std::vector<const Node*> targets;  // nodes that run for their effects
};

// Returns the node that calls the new function. Values from before the part's arguments, and
// results of nodes that run once per session (handles of variables), become further arguments
// behind the requested ones; constants are copied. The call waits for all of these, so control
// inputs from before the part are left out. INVALID_ARGUMENT for a needed placeholder that is no
// argument, for ops of control flow and on references, and for targets that the arguments wait for;
// ALREADY_EXISTS if the library has the name. The graph is then unchanged.
StatusOr<const Node*> Outline(Graph* graph, const PartSpec& part);

}  // namespace thalweg
