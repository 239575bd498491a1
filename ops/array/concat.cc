// ConcatV2: tensors one after the other along an axis.
#include "ops/common/grad.h"
#include "ops/common/types.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

// The size along the axis is the sum, the other sizes must agree.
MaybeDims Joined(const tw::Shape& s, uint32_t n, int64_t axis) {
  MaybeDims out;
  int64_t sum = 0;
  for (uint32_t i = 0; i < n; ++i) {
    MaybeDims in = In(s, i);
    if (!in) {
      sum = -1;
      continue;
    }
    const size_t k = static_cast<size_t>(Axis(axis, static_cast<int64_t>(in->size()), "axis"));
    sum = s.calc('+', sum, (*in)[k]);
    (*in)[k] = -1;
    out = Merge(s, out, in,
                "apart from axis " + std::to_string(k) + " the shapes of 'values' must agree: those before input " + std::to_string(i) +
                    ", and its own,");
  }
  if (out) (*out)[static_cast<size_t>(Axis(axis, static_cast<int64_t>(out->size()), "axis"))] = sum;
  return out;
}

void Rule(const tw::Shape& s) {
  const uint32_t n = s.c->n_in - 1;
  const std::optional<int64_t> axis = ScalarValue(s, n, "axis");
  MaybeDims ranked;
  for (uint32_t i = 0; i < n; ++i) {
    WantRankAtLeast(s, i, 1, "values");
    if (!s.known(i)) continue;
    if (ranked && ranked->size() != static_cast<size_t>(s.rank(i)))
      Fail("'values' must all have one rank: " + Text(ranked) + " and " + tw::text(s.in(i)) + " differ");
    ranked = In(s, i);
  }
  if (axis)
    Set(s, 0, Joined(s, n, *axis));
  else if (ranked)
    s.out(0, Dims(ranked->size(), -1));
}

// Each input gets its part of the gradient: a slice that starts where the inputs before it end.
void Gradient(const tw::Grad& g) {
  const uint32_t n = g.inputs() - 1;
  const tw_edge rank = g.op("Size", {g.shape(0)});
  const tw_edge axis = g.op("FloorMod", {CastTo(g, g.x(n), TW_INT32), rank});
  const tw_edge along = g.op("OneHot", {axis, rank, Int(g, 1), Int(g, 0)});
  tw_edge begin = g.op("ZerosLike", {along});
  for (uint32_t i = 0; i < n; ++i) {
    g.dx(i, g.op("Slice", {g.dy(), begin, g.shape(i)}));
    if (i + 1 < n) begin = g.op("AddV2", {begin, g.op("Mul", {g.shape(i), along})});
  }
}

// The same with all numbers at hand.
bool KnownGradient(const tw::Grad& g) {
  const uint32_t n = g.inputs() - 1;
  Dims axis;
  if (!g.value(n, &axis) || !ShapeIn(g, 0)) return false;
  const size_t rank = ShapeIn(g, 0)->size(), k = static_cast<size_t>(Axis(axis[0], static_cast<int64_t>(rank), "axis"));
  for (uint32_t i = 0; i < n; ++i)
    if (!ShapeIn(g, i) || !Known((*ShapeIn(g, i))[k])) return false;
  Dims begin(rank, 0), size(rank, -1);  // -1: all there is
  for (uint32_t i = 0; i < n; ++i) {
    size[k] = (*ShapeIn(g, i))[k];
    g.dx(i, g.op("Slice", {g.dy(), g.ints(begin), g.ints(size)}));
    begin[k] += size[k];
  }
  return true;
}

void EitherGradient(const tw::Grad& g) {
  if (!KnownGradient(g)) Gradient(g);
}

}  // namespace

void register_concat(tw::Plugin& p) {
  p.op<EitherGradient, Rule>("ConcatV2(values: T * N, axis: Tidx) -> (output: T); N: int >= 2; T: type; Tidx: " OPS_INDEX
                             " = int32; role concat; doc \"tensors one after the other along an axis\"");
}

}  // namespace thalweg::ops
