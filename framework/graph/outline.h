// Outlining, the opposite of inlining: a part of a graph becomes a function, and a node calls it. The nodes of the part stay; whoever reads
// the call's outputs in their place does without them. Threads: one at a time per graph.
#pragma once
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/graph/graph.h"

namespace thalweg {

// All that the results and targets need and the arguments do not.
struct PartSpec {
  std::string name;                  // of the function
  std::vector<Edge> args;            // values that it begins with
  std::vector<Edge> results;         // values that it gives
  std::vector<const Node*> targets;  // nodes that run for what they do
};

// The node that calls the new function. What the part takes from before its arguments, and what nodes that run once answer (handles of
// variables), becomes an argument, behind those that were asked for; constants are copied. The call waits for all of it, so control
// inputs from before are left out. Errors: INVALID_ARGUMENT for a placeholder that is needed and no argument, for ops of control flow and
// on references, and for targets that the arguments wait for; ALREADY_EXISTS where the library has the name. The graph is then as before.
StatusOr<const Node*> Outline(Graph* graph, const PartSpec& part);

}  // namespace thalweg
