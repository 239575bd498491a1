#include "distributed/forms.h"

namespace thalweg::distributed {

const Node* Forms::RunsFor(const Node* n) const {
  auto it = runs_.find(n);
  return it == runs_.end() ? n : it->second;
}

Edge Forms::Real(Edge e) const {
  while (!runs_.empty() || !replaced_.empty()) {
    const Node* runs = RunsFor(e.node);
    if (auto it = replaced_.find({e.node, e.port}); it != replaced_.end()) {
      e = it->second;
    } else if (lowered_.Has(runs)) {
      e = lowered_.Out({runs, e.port});
    } else {
      break;
    }
  }
  return e;
}

const Node* Forms::Real(const Node* n) const {
  if (auto it = replaced_.find({n, 0}); it != replaced_.end()) return Real(it->second.node);
  const Node* runs = RunsFor(n);
  return lowered_.Has(runs) ? lowered_.Done(runs) : n;
}

StatusOr<bool> Forms::Lower(const Node* n, const Node* last) {
  if (auto it = runs_.find(n); it != runs_.end()) {
    if (it->second != n || last == n || !n->op().stateful) return false;
    return OfNode(*n, Unimplemented(n->title(), ": it spans tasks, has run without what its gradient needs, and must not run twice in a ",
                                    "step; run the step with the gradient first"));
  }
  RETURN_IF_ERROR(lowered_.Lower(*last).status());
  return lowered_.Has(last) && runs_.emplace(n, last).second;
}

}  // namespace thalweg::distributed
