// Replaces nodes that change nothing, according to their ops' schemas (the clauses of plugin/op.h),
// by their inputs.
#include <algorithm>
#include <cstring>
#include <set>
#include <string_view>

#include "framework/graph/builder.h"
#include "framework/planner/work_graph.h"

namespace thalweg {
namespace {

// Returns true for a type whose elements are single real numbers or truth values.
bool IsReal(uint32_t dtype) {
  switch (dtype) {
    case TW_BOOL:
    case TW_HALF:
    case TW_BFLOAT16:
    case TW_FLOAT:
    case TW_DOUBLE:
    case TW_INT8:
    case TW_INT16:
    case TW_INT32:
    case TW_INT64:
    case TW_UINT8:
    case TW_UINT16:
    case TW_UINT32:
    case TW_UINT64: return true;
    default: return false;
  }
}

// Returns true if every element has the bits of the number; false for a tensor without elements.
bool IsFilledWith(const Tensor& t, double number) {
  if (t.count() == 0 || !IsReal(t.dtype())) return false;
  auto one = ScalarTensor(t.dtype(), number);
  if (!one.ok()) return false;
  const size_t size = size_t(one->bytes());
  for (uint64_t i = 0; i < t.count(); ++i) {
    if (std::memcmp(t.as<char>() + i * size, one->data(), size) != 0) return false;
  }
  return true;
}

// Returns perm with its negative axes counted from the front; empty if it is no list of axes.
std::vector<int64_t> Axes(const Tensor& perm) {
  std::vector<int64_t> axes;
  for (uint64_t i = 0; i < perm.count(); ++i) {
    const int64_t axis = perm.dtype() == TW_INT64 ? perm.as<int64_t>()[i] : perm.dtype() == TW_INT32 ? perm.as<int32_t>()[i] : INT64_MIN;
    axes.push_back(axis < 0 ? axis + int64_t(perm.count()) : axis);
    if (axes.back() < 0 || axes.back() >= int64_t(perm.count())) return {};
  }
  return axes;
}

bool AreInOrder(const std::vector<int64_t>& axes) {
  for (size_t k = 0; k < axes.size(); ++k) {
    if (axes[k] != int64_t(k)) return false;
  }
  return true;
}

class Simplifier {
 public:
  explicit Simplifier(WorkGraph* w) : w_(*w), stands_for_(w->nodes.size()), effects_(w->nodes.size(), 0) {}

  void Run() {
    // Colocation goes by name, so a node that others are colocated with stays.
    for (const WorkNode& n : w_.nodes) {
      if (n.node) colocated_.insert(n.node->colocate_with().begin(), n.node->colocate_with().end());
    }
    for (size_t i = 0; i < w_.nodes.size(); ++i) {
      WorkNode& n = w_.nodes[i];
      for (WorkEdge& e : n.in) e = Now(e);
      for (int32_t& c : n.controls) c = Now({c, 0}).node;
      effects_[i] = HasEffects(n);
      if (!n.node || n.constant || !n.node->op().algebra.said || !n.controls.empty()) continue;
      if (!n.node->colocate_with().empty() || colocated_.count(n.node->name())) continue;
      const WorkEdge same = Find(&n, WorkEdge{int32_t(i), 0});
      if (same.node < 0 || TypeOf(same) != n.out_types[0]) continue;
      stands_for_[i] = same;
      w_.notes.removed.push_back({n.node, GraphEdge(same)});
    }
    for (WorkEdge& e : w_.fetches) e = Now(e);
    for (int32_t& t : w_.targets) t = Now({t, 0}).node;
  }

 private:
  WorkEdge Now(const WorkEdge& e) const {
    const WorkEdge& other = stands_for_[size_t(e.node)];
    return other.node < 0 ? e : other;
  }
  Edge GraphEdge(const WorkEdge& e) const {
    const WorkNode& n = w_.nodes[size_t(e.node)];
    return n.node ? Edge{n.node, e.port} : w_.signature->feeds[size_t(n.feed)];
  }
  const WorkNode& Maker(const WorkEdge& e) const { return w_.nodes[size_t(e.node)]; }
  const Shape& ShapeOf(const WorkEdge& e) const { return Maker(e).shapes[size_t(e.port)]; }
  uint32_t TypeOf(const WorkEdge& e) const { return Maker(e).out_types[size_t(e.port)]; }

  // Returns true if the node, or one that it waits for, does more than make its outputs.
  bool HasEffects(const WorkNode& n) const {
    if (!n.node || n.constant) return !n.controls.empty() || n.ordered;
    if (n.node->op().stateful || !n.controls.empty()) return true;
    return std::any_of(n.in.begin(), n.in.end(), [&](const WorkEdge& e) { return effects_[size_t(e.node)] != 0; });
  }
  // Returns a value that is the same for all feeds and needs no waiting; NULL if there is none.
  const Tensor* Known(const WorkEdge& e) const {
    const WorkNode& p = Maker(e);
    const Tensor& value = p.values[size_t(e.port)];
    return value && !p.varies && !p.ordered && p.controls.empty() ? &value : nullptr;
  }
  // Returns the node behind an edge if it may be looked through; NULL if not.
  const WorkNode* Through(const WorkEdge& e) const {
    const WorkNode& p = Maker(e);
    return p.node && !p.constant && !p.ordered && p.controls.empty() && p.node->op().algebra.said ? &p : nullptr;
  }
  // Returns true if both have one known shape. If the shapes vary, the check is repeated for other
  // feeds.
  bool SameShape(const WorkEdge& a, const WorkEdge& b) {
    if (!ShapeOf(a).known() || !(ShapeOf(a) == ShapeOf(b))) return false;
    if (Maker(a).varies || Maker(b).varies) w_.equal_shapes.push_back({a, b});
    return true;
  }

  // Returns the edge that replaces the node's output; node -1 if there is none.
  WorkEdge Find(WorkNode* n, const WorkEdge& self) {
    const OpAlgebra& a = n->node->op().algebra;
    const WorkEdge none;
    if (a.passes >= 0) return n->in[size_t(a.passes)];
    if (a.converts >= 0) return n->in[size_t(a.converts)];
    if (a.renames >= 0) return Renamed(n, self);
    if (a.permuted >= 0) return Permuted(*n);
    if (a.condition >= 0) return Chosen(*n, self);
    if (!a.neutral.empty()) return Neutral(*n, self);
    if (!a.involution && !a.idempotent) return none;
    const WorkNode* p = Through(n->in[0]);
    if (!p || &p->node->op() != &n->node->op() || !(p->node->attrs() == n->node->attrs())) return none;
    if (a.involution) return p->in[0];
    return IsReal(n->out_types[0]) ? n->in[0] : none;
  }

  // Returns true if the inputs other than k only make their values.
  bool OthersAreIdle(const WorkNode& n, size_t k) const {
    for (size_t i = 0; i < n.in.size(); ++i) {
      if (i != k && effects_[size_t(n.in[i].node)]) return false;
    }
    return true;
  }

  // The value under dims that it had before, perhaps some nodes earlier. A reshape depends only on
  // the number of elements.
  WorkEdge Renamed(WorkNode* n, const WorkEdge& self) {
    const size_t k = size_t(n->node->op().algebra.renames);
    WorkEdge from = n->in[k];
    if (!OthersAreIdle(*n, k)) return {};
    if (TypeOf(from) != n->out_types[0] || SameShape(self, from)) return from;
    // If only running tells the shape, the node may still fail, so it stays.
    while (const WorkNode* p = ShapeOf(from).known() ? Through(from) : nullptr) {
      const int32_t further = p->node->op().algebra.renames;
      if (further < 0 || TypeOf(p->in[size_t(further)]) != n->out_types[0] || !OthersAreIdle(*p, size_t(further))) break;
      if (!ShapeOf(p->in[size_t(further)]).known()) break;
      from = p->in[size_t(further)];
      if (SameShape(self, from)) return from;
    }
    if (n->node->op().role == "reshape") n->in[k] = from;
    return {};
  }

  // If the rank of an input is unknown, the kernel must still check that the axes are valid.
  WorkEdge Judged(const WorkEdge& e) const { return ShapeOf(e).rank() >= 0 ? e : WorkEdge(); }
  WorkEdge Permuted(const WorkNode& n) const {
    const OpAlgebra& a = n.node->op().algebra;
    const Tensor* perm = Known(n.in[size_t(a.permutation)]);
    if (!perm || perm->rank() != 1) return {};
    std::vector<int64_t> axes = Axes(*perm);
    if (axes.size() != perm->count()) return {};
    const WorkEdge from = n.in[size_t(a.permuted)];
    if (AreInOrder(axes)) return Judged(from);
    const WorkNode* p = Through(from);
    if (!p || p->node->op().algebra.permuted < 0) return {};
    const OpAlgebra& inner = p->node->op().algebra;
    const Tensor* first = Known(p->in[size_t(inner.permutation)]);
    if (!first || first->count() != perm->count()) return {};
    const std::vector<int64_t> before = Axes(*first);
    if (before.size() != axes.size()) return {};
    for (int64_t& axis : axes) axis = before[size_t(axis)];
    return AreInOrder(axes) ? Judged(p->in[size_t(inner.permuted)]) : WorkEdge();
  }

  WorkEdge Chosen(const WorkNode& n, const WorkEdge& self) {
    const OpAlgebra& a = n.node->op().algebra;
    const Tensor* condition = Known(n.in[size_t(a.condition)]);
    if (!condition || condition->dtype() != TW_BOOL) return {};
    const bool always = IsFilledWith(*condition, 1);
    if (!always && !IsFilledWith(*condition, 0)) return {};
    const WorkEdge taken = n.in[size_t(always ? a.if_true : a.if_false)], other = n.in[size_t(always ? a.if_false : a.if_true)];
    const bool judged = ShapeOf(other).known();  // else the kernel must still check whether it fits
    return judged && !effects_[size_t(other.node)] && SameShape(self, taken) ? taken : WorkEdge();
  }

  WorkEdge Neutral(const WorkNode& n, const WorkEdge& self) {
    for (const auto& [input, number] : n.node->op().algebra.neutral) {
      const WorkEdge other = n.in[size_t(1 - input)];
      const Tensor* value = Known(n.in[size_t(input)]);
      if (!value || !IsFilledWith(*value, number)) continue;
      if (value->rank() == 0 || SameShape(self, other)) return other;
    }
    return {};
  }

  WorkGraph& w_;
  std::vector<WorkEdge> stands_for_;  // per node: the edge read in its place; node -1: itself
  std::vector<uint8_t> effects_;
  std::set<std::string_view> colocated_;
};

}  // namespace

Status SimplifyPass(WorkGraph* w) {
  if (w->flow) return Status();  // the end of a forwarding node may tell others whether they run
  Simplifier(w).Run();
  return Status();
}

}  // namespace thalweg
