#include "framework/planner/passes/open_variables.h"

#include "framework/base/dtype.h"

namespace thalweg {
namespace {

// Returns the last of the references that the node is given; NULL if there is none.
const Edge* GivenReference(const Node& n) {
  for (int32_t i = n.n_in(); i-- > 0;) {
    if (IsRef(n.in_type(i))) return &n.inputs()[size_t(i)];
  }
  return nullptr;
}

}  // namespace

bool MakesReference(const Node& n) { return n.runs_as() && !GivenReference(n); }

void OpenVariables::LookAt(const Node& n) {
  const Edge* given = GivenReference(n);
  const Node*& maker = made_[&n] = given ? made_[given->node] : &n;
  if (!given || n.n_out() == 0 || !IsRef(n.out_type(0))) return;
  auto both = MergeShapes(given->node->shape(given->port), n.shape(0));
  if (!both.ok() || !(*both == n.shape(0))) open_.insert(maker);
}

void OpenVariables::Look(const Graph& graph) {
  for (const int32_t size = graph.size(); seen_ < size; ++seen_) {
    const Node* n = graph.node(seen_);
    if (n->runs_as()) LookAt(*n);
  }
}

}  // namespace thalweg
