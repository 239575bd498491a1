// OpenVariables: variables by reference whose shape some node of the graph may change, in this step
// or in another. A node that forwards such a reference does not answer with the shape of the
// reference that it was given.
#pragma once
#include <cstdint>
#include <unordered_map>
#include <unordered_set>

#include "framework/graph/graph.h"

namespace thalweg {

// Returns true if the node makes a reference and takes none.
bool MakesReference(const Node& n);

class OpenVariables {
 public:
  // Examines the nodes that were added since the last call.
  void Look(const Graph& graph);
  // variable: the node that makes the reference.
  bool Has(const Node* variable) const { return open_.contains(variable); }
  int32_t seen() const { return seen_; }  // number of nodes examined

 private:
  void LookAt(const Node& n);
  int32_t seen_ = 0;
  std::unordered_map<const Node*, const Node*> made_;  // for nodes that forward a reference: the node that made the variable
  std::unordered_set<const Node*> open_;
};

}  // namespace thalweg
