// NeededNodes: the nodes of a client's graph that a signature needs. It walks back from fetches and
// targets, as planning does in one process, and stops at feeds. On the way it decides the form in
// which nodes run (Forms), since that decides which other nodes are needed.
// Threads: one at a time.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "distributed/forms.h"
#include "framework/session/session.h"

namespace thalweg::distributed {

class NeededNodes {
 public:
  NeededNodes(const Graph* graph, Forms* forms, const CallableSpec* spec);
  // was_told: whether a task has the node, so that the source of its values is final. Errors: those
  // of Forms::Lower.
  Status Collect(const std::function<bool(const Node*)>& was_told);
  const std::vector<const Node*>& all() const { return nodes_; }  // by id
  bool Has(const Node* n) const;
  // Returns the index of the signature's feed for the value.
  std::optional<int32_t> Feed(const Edge& e) const;
  // Returns true if no node has to wait for n: it is a fed placeholder, which does not run, or has
  // run already.
  bool IsGiven(const Node* n) const { return (n->op().role == "placeholder" && Feed({n, 0})) || IsOver(n); }
  // Returns true if an earlier part of the run has run n; its needed values are fed.
  bool IsOver(const Node* n) const;

 private:
  void Walk();
  bool TakeForms(const Node& n, const std::function<bool(const Node*)>& was_told);
  StatusOr<bool> LowerOne(const Node* n);

  const Graph& graph_;
  Forms& forms_;
  const CallableSpec& spec_;
  std::map<std::pair<const Node*, int32_t>, int32_t> fed_;
  std::vector<const Node*> nodes_;
};

}  // namespace thalweg::distributed
