#include "distributed/needed_nodes.h"

#include <algorithm>
#include <set>

#include "framework/graph/function_shapes.h"

namespace thalweg::distributed {
namespace {

bool ById(const Node* a, const Node* b) { return a->id() < b->id(); }

}  // namespace

NeededNodes::NeededNodes(const Graph* graph, Forms* forms, const CallableSpec* spec) : graph_(*graph), forms_(*forms), spec_(*spec) {
  for (size_t i = 0; i < spec_.feeds.size(); ++i) fed_.emplace(std::pair(spec_.feeds[i].node, spec_.feeds[i].port), int32_t(i));
}

bool NeededNodes::Has(const Node* n) const { return std::binary_search(nodes_.begin(), nodes_.end(), n, ById); }

std::optional<int32_t> NeededNodes::Feed(const Edge& e) const {
  auto it = fed_.find({e.node, e.port});
  return it == fed_.end() ? std::nullopt : std::optional(it->second);
}

bool NeededNodes::IsOver(const Node* n) const { return std::binary_search(spec_.over.begin(), spec_.over.end(), n, ById); }

// Repeats until values are read where they are made and no new form is chosen.
Status NeededNodes::Collect(const std::function<bool(const Node*)>& was_told) {
  for (;;) {
    Walk();
    bool changed = false;
    for (const Node* n : nodes_) {
      if (graph_.has_replaced()) changed = TakeForms(*n, was_told) || changed;
      if (!CallsFunctions(n->op())) continue;
      ASSIGN_OR_RETURN(const bool lowered, LowerOne(n));
      changed = changed || lowered;
    }
    if (!changed) return Status();
  }
}

void NeededNodes::Walk() {
  std::vector<const Node*> todo;
  std::set<const Node*> seen;
  nodes_.clear();
  auto need = [&](const Node* n) {
    if (!IsGiven(n) && seen.insert(n).second) todo.push_back(n);
  };
  for (const Edge& e : spec_.fetches) {
    if (!Feed(e)) need(forms_.Real(e).node);
  }
  for (const Node* n : spec_.targets) need(forms_.Real(n));
  while (!todo.empty()) {
    const Node* n = todo.back();
    todo.pop_back();
    nodes_.push_back(n);
    for (const Edge& e : n->inputs()) {
      if (!Feed(e)) need(forms_.Real(e).node);
    }
    for (const Node* c : n->controls()) need(forms_.Real(c));
    for (int32_t i = 0; i < n->n_in(); ++i) {
      if (const Node* next = n->back(i)) need(next);
    }
  }
  std::sort(nodes_.begin(), nodes_.end(), ById);
}

// If needed nodes make a value in another way anyway, takes the value from them.
bool NeededNodes::TakeForms(const Node& n, const std::function<bool(const Node*)>& was_told) {
  bool changed = false;
  for (int32_t o = 0; o < n.n_out(); ++o) {
    const Edge by = Feed({&n, o}) ? Edge() : graph_.ReplacedBy({&n, o});
    bool runs = false;
    for (const Node* form = by.node; form && !runs; form = graph_.ExtendedBy(form)) runs = Has(form);
    if (runs && !was_told(&n)) changed = forms_.Replace(n, o, by) || changed;
  }
  return changed;
}

StatusOr<bool> NeededNodes::LowerOne(const Node* n) {
  const Node* last = n;
  for (const Node* by = graph_.ExtendedBy(n); by; by = graph_.ExtendedBy(by)) {
    if (Has(by)) last = by;
  }
  return forms_.Lower(n, last);
}

}  // namespace thalweg::distributed
