// Nodes copied from one graph into another of the same runtime. Threads: one per target graph.
#pragma once
#include <map>
#include <unordered_map>

#include "framework/base/status.h"
#include "framework/graph/graph.h"

namespace thalweg {

// What stands in the target graph for values and nodes of the source graph.
class Copied {
 public:
  void Put(const Edge& from, const Edge& to) { values_[Key(from)] = to; }
  void Put(const Node* from, const Node* to) { nodes_[from] = to; }
  // Empty, NULL: nothing does.
  Edge Find(const Edge& e) const;
  const Node* Find(const Node* n) const;

 private:
  static std::pair<const Node*, int32_t> Key(const Edge& e) { return {e.node, e.port}; }
  std::map<std::pair<const Node*, int32_t>, Edge> values_;  // beside the outputs of nodes_
  std::unordered_map<const Node*, const Node*> nodes_;
};

// Adds a copy of the node, which reads what stands for its inputs and waits for what stands for its control inputs; those that nothing
// stands for are left out. REQUIRES: something stands for every input. Errors: those of AddNode.
StatusOr<const Node*> CopyNode(const Node& node, Graph* to, Copied* copied);

// The same of every node of a graph that is not there yet, in order, with the edges that close loops and what stands in the place of nodes
// and values.
Status CopyNodes(const Graph& from, Graph* to, Copied* copied);

}  // namespace thalweg
