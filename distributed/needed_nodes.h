// NeededNodes: which nodes of a client's graph a signature needs: backwards from what is wanted, as planning does it in one process,
// stopping at what is fed. On the way it decides in which form they run (Forms), for that decides what else is needed.
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
  // was_told: whether a task has the node, so that its values come from nowhere else any more. Errors: those of Forms::Lower.
  Status Collect(const std::function<bool(const Node*)>& was_told);
  const std::vector<const Node*>& all() const { return nodes_; }  // by id
  bool Has(const Node* n) const;
  // Which of the signature's feeds the value is.
  std::optional<int32_t> Feed(const Edge& e) const;
  // Nobody has to wait for it: a placeholder that is fed runs nothing, and what is over has run.
  bool IsGiven(const Node* n) const { return (n->op().role == "placeholder" && Feed({n, 0})) || IsOver(n); }
  // An earlier part of the run has run it: what is needed of it is fed.
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
