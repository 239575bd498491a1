#include "ops/common/grad.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace thalweg::ops {
namespace {

// How to reduce the shape of a broadcast result to that of one operand.
struct Undo {
  bool known = true;  // false: known only in the step
  Dims missing;       // leading axes that the operand does not have
  Dims ones;          // axes where the operand has size 1
};

Undo PlanUndo(const MaybeDims& self, const MaybeDims& other) {
  Undo undo;
  if (SameShape(self, other) || (other && other->empty())) return undo;
  undo.known = self && other;
  if (!undo.known) return undo;
  const size_t rank = std::max(self->size(), other->size());
  for (size_t k = 0; k < rank; ++k) {
    const bool mine = k + self->size() >= rank;
    const int64_t x = mine ? (*self)[k + self->size() - rank] : 1;
    const int64_t y = k + other->size() >= rank ? (*other)[k + other->size() - rank] : 1;
    if (!mine)
      undo.missing.push_back(static_cast<int64_t>(k));
    else if (x == 1 && y != 1)
      undo.ones.push_back(static_cast<int64_t>(k));  // harmless if y turns out to be 1
    else if (!Known(x) && y != 1 && !SameSize(x, y))
      undo.known = false;
  }
  return undo;
}

// axes: the summed axes as an edge, needed if the plan is not known.
tw_edge ApplyUndo(const tw::Grad& g, tw_edge e, uint32_t i, const Undo& undo, tw_edge axes) {
  if (!undo.known) return g.op("Reshape", {g.op("Sum", {e, axes}), g.shape(i)});
  if (undo.missing.empty() && undo.ones.empty()) return e;
  const bool keep = undo.missing.empty();
  const tw_edge sum = g.op("Sum", {e, Ints(g, Join(undo.missing, undo.ones))}, {{"keep_dims", keep}});
  return keep || undo.ones.empty() ? sum : g.op("Reshape", {sum, g.shape(i)});
}

// Returns the axes before the last n.
MaybeDims Leading(const MaybeDims& dims, size_t n) {
  if (!dims || dims->size() < n) return std::nullopt;
  return Sub(*dims, 0, dims->size() - n);
}

bool IsComplex(uint32_t type) { return type == TW_COMPLEX64 || type == TW_COMPLEX128; }

}  // namespace

void PassBack(const tw::Grad& g, uint32_t i, uint32_t o) {
  tw_edge rows = 0;
  const tw_edge values = g.g()->dy_sparse(g.c->b, o, &rows);
  if (values) {
    g.dx_sparse(i, rows, values);
  } else {
    g.dx(i, g.dy(o));
  }
}

uint32_t TypeOf(const tw::Grad& g, tw_edge e) {
  uint32_t type = 0;
  tw_shape shape{};
  tw::check(g.g()->describe(g.c->b, e, &type, &shape));
  return type;
}

MaybeDims DimsOf(const tw::Grad& g, tw_edge e) {
  uint32_t type = 0;
  tw_shape shape{};
  tw::check(g.g()->describe(g.c->b, e, &type, &shape));
  return ToDims(shape);
}

tw_edge ShapeOf(const tw::Grad& g, tw_edge e) {
  const MaybeDims dims = DimsOf(g, e);
  return AllKnown(dims) ? Ints(g, *dims) : g.op("Shape", {e});
}

tw_edge Conj(const tw::Grad& g, tw_edge e) { return IsComplex(TypeOf(g, e)) ? g.op("Conj", {e}) : e; }

tw_edge RealPart(const tw::Grad& g, tw_edge e) {
  const tw_edge conj = Conj(g, e);
  return conj == e ? e : g.op("Mul", {g.op("AddV2", {e, conj}), Number(g, 0.5, e)});
}

tw_edge Part(const tw::Grad& g, const char* part, tw_edge z) {
  return g.op(part, {z}, {tw::Attr::Type("Tout", TypeOf(g, z) == TW_COMPLEX128 ? TW_DOUBLE : TW_FLOAT)});
}

tw_edge Complex(const tw::Grad& g, tw_edge re, tw_edge im) {
  return g.op("Complex", {re, im}, {tw::Attr::Type("Tout", TypeOf(g, re) == TW_DOUBLE ? TW_COMPLEX128 : TW_COMPLEX64)});
}

tw_edge CastTo(const tw::Grad& g, tw_edge e, uint32_t type) {
  return TypeOf(g, e) == type ? e : g.op("Cast", {e}, {tw::Attr::Type("DstT", type)});
}

tw_edge Int(const tw::Grad& g, int64_t v) { return g.scalar(static_cast<double>(v), TW_INT32); }

tw_edge Number(const tw::Grad& g, double v, tw_edge like) { return g.scalar(v, TypeOf(g, like)); }

tw_edge Tail(const tw::Grad& g, tw_edge vector, int64_t from) {
  return g.op("StridedSlice", {vector, Ints(g, {from}), Ints(g, {0}), Ints(g, {1})}, {{"end_mask", 1}});
}

tw_edge Head(const tw::Grad& g, tw_edge vector, int64_t to) {
  return g.op("StridedSlice", {vector, Ints(g, {0}), Ints(g, {to}), Ints(g, {1})}, {{"begin_mask", 1}});
}

tw_edge Concat(const tw::Grad& g, std::initializer_list<tw_edge> vectors) {
  std::vector<tw_edge> in(vectors);
  in.push_back(Int(g, 0));
  return g.op("ConcatV2", in);
}

tw_edge Ones(const tw::Grad& g, tw_edge n) { return g.op("Fill", {g.op("Reshape", {n, Ints(g, {1})}), Int(g, 1)}); }

tw_edge SumTo(const tw::Grad& g, tw_edge e, uint32_t i, const MaybeDims& other) {
  const Undo undo = PlanUndo(ShapeIn(g, i), other);
  return ApplyUndo(g, e, i, undo, undo.known ? 0 : g.op("BroadcastGradientArgs", {g.shape(i), ShapeOf(g, e)}));
}

void BroadcastGradient(const tw::Grad& g, tw_edge dx, tw_edge dy, size_t trailing) {
  const MaybeDims a = Leading(ShapeIn(g, 0), trailing), b = Leading(ShapeIn(g, 1), trailing);
  const Undo x = PlanUndo(a, b), y = PlanUndo(b, a);
  tw_edge axes = 0;
  if (!x.known || !y.known) {
    tw_edge s0 = g.shape(0), s1 = g.shape(1);
    if (trailing) s0 = Head(g, s0, -static_cast<int64_t>(trailing)), s1 = Head(g, s1, -static_cast<int64_t>(trailing));
    axes = g.op("BroadcastGradientArgs", {s0, s1});
  }
  g.dx(0, ApplyUndo(g, dx, 0, x, axes));
  g.dx(1, ApplyUndo(g, dy, 1, y, y.known ? 0 : g.out(axes, 1)));
}

tw_edge SumWhere(const tw::Grad& g, tw_edge mask, tw_edge e) {
  const tw_edge chosen = g.op("SelectV2", {mask, e, Number(g, 0, e)});
  return g.op("Sum", {g.op("Reshape", {chosen, Ints(g, {-1})}), Int(g, 0)});
}

Dims Iota(int64_t n) {
  Dims v(static_cast<size_t>(n));
  std::iota(v.begin(), v.end(), 0);
  return v;
}

}  // namespace thalweg::ops
