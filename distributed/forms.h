// Forms: in which of its forms each node of a client's graph runs on a cluster, and so where its values really come from. A branch, loop or
// call that spans tasks is made of primitives (LoweredFlow); a value that is made another way by what runs anyway is read there
// (Graph::Extend, Graph::Replace). What was decided once stays, for tasks have been told of it. Threads: one at a time.
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
  // What takes a value's place, or a node's.
  Edge Real(Edge e) const;
  const Node* Real(const Node* n) const;
  // Whether others run in its place, now or when it is needed.
  bool AreOthersThan(const Node& n) { return lowered_.Takes(n); }
  // From now on the value is read from `by`. False: that it is, or from another, was decided before.
  bool Replace(const Node& n, int32_t port, const Edge& by) { return replaced_.emplace(std::pair(&n, port), by).second; }
  // Sees to n, which calls functions, in the form of `last` (n itself, or what extends it). True: it is made of primitives now.
  // UNIMPLEMENTED: it has run in another form, and must not run twice.
  StatusOr<bool> Lower(const Node* n, const Node* last);

 private:
  const Node* RunsFor(const Node* n) const;

  LoweredFlow lowered_;
  std::map<const Node*, const Node*> runs_;                   // of those that are made of primitives: which of them
  std::map<std::pair<const Node*, int32_t>, Edge> replaced_;  // values that are read elsewhere
};

}  // namespace thalweg::distributed
