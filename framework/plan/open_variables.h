// Variables by reference whose shape some node of the graph may change, whether it runs in this step or in another: what it answers does
// not have the shape of the reference that it was given. Threads: one at a time; nodes may be added meanwhile.
#pragma once
#include <cstdint>
#include <unordered_map>
#include <unordered_set>

#include "framework/graph/graph.h"

namespace thalweg {

// The node makes a reference, and is given none.
bool MakesReference(const Node& n);

class OpenVariables {
 public:
  // Looks at the nodes that were added since the last look.
  void Look(const Graph& graph);
  // variable: the node that makes the reference.
  bool Has(const Node* variable) const { return open_.contains(variable); }
  int32_t seen() const { return seen_; }  // nodes

 private:
  void LookAt(const Node& n);
  int32_t seen_ = 0;
  std::unordered_map<const Node*, const Node*> made_;  // by whom the variable was, of nodes that hand it on
  std::unordered_set<const Node*> open_;
};

}  // namespace thalweg
