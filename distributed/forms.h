// Forms: the form in which each node of a client's graph runs on a cluster, and so the edge that
// really makes its values. A branch, loop or call that spans tasks is lowered to primitives
// (LoweredFlow). If running nodes make a value in another way, it is read there (Graph::Extend,
// Graph::Replace). Decisions are final, because tasks have been told of them. Threads: one at a
// time.
#pragma once
#include <cstdint>
#include <map>
#include <utility>

#include "distributed/lowered_flow.h"
#include "framework/base/status.h"
#include "framework/graph/graph.h"

namespace thalweg::distributed {

class Forms {
 public:
  explicit Forms(Graph* graph) : lowered_(graph) {}
  // Returns the edge, or node, that replaces a value, or a node.
  Edge Real(Edge e) const;
  const Node* Real(const Node* n) const;
  // Returns whether other nodes run in its place, now or once it is needed.
  bool AreOthersThan(const Node& n) { return lowered_.Takes(n); }
  // Makes readers use `by` for this value from now on. Returns false if an earlier decision already
  // set the source of the value.
  bool Replace(const Node& n, int32_t port, const Edge& by) { return replaced_.emplace(std::pair(&n, port), by).second; }
  // Lowers n, which calls functions, in the form of `last` (n itself, or its extension), if it
  // spans tasks. Returns true if it became primitives now. UNIMPLEMENTED: it has run in another
  // form, and must not run twice.
  StatusOr<bool> Lower(const Node* n, const Node* last);

 private:
  const Node* RunsFor(const Node* n) const;

  LoweredFlow lowered_;
  std::map<const Node*, const Node*> runs_;                   // for lowered nodes: the form that runs
  std::map<std::pair<const Node*, int32_t>, Edge> replaced_;  // values that are read elsewhere
};

}  // namespace thalweg::distributed
