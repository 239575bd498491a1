// Copies nodes from one graph into another of the same runtime. Threads: one per target graph.
#pragma once
#include <map>
#include <string_view>
#include <unordered_map>

#include "framework/base/status.h"
#include "framework/graph/graph.h"

namespace thalweg {

// Maps values and nodes of the source graph to those of the target graph.
class Copied {
 public:
  void Put(const Edge& from, const Edge& to) { values_[Key(from)] = to; }
  void Put(const Node* from, const Node* to) { nodes_[from] = to; }
  // Return an empty edge or NULL if there is no counterpart.
  Edge Find(const Edge& e) const;
  const Node* Find(const Node* n) const;

 private:
  static std::pair<const Node*, int32_t> Key(const Edge& e) { return {e.node, e.port}; }
  std::map<std::pair<const Node*, int32_t>, Edge> values_;  // overrides for values; other values follow their nodes
  std::unordered_map<const Node*, const Node*> nodes_;
};

// Adds a copy of the node whose inputs and control inputs are the counterparts of the originals;
// control inputs without a counterpart are left out. prefix: of the copy's name. REQUIRES: every input
// has a counterpart. Errors: those of AddNode.
StatusOr<const Node*> CopyNode(const Node& node, Graph* to, Copied* copied, std::string_view prefix = "");

// Copies every node of `from` that has no counterpart yet, in order, and the loop edges, extensions
// and replacements of the graph.
Status CopyNodes(const Graph& from, Graph* to, Copied* copied);

}  // namespace thalweg
