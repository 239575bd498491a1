// ConcatV2 and Concat join tensors along an axis. ConcatOffset computes the offset of each of them.
#include "ops/common/grad.h"
#include "ops/common/types.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

// Numbers of the inputs that hold the values and the axis. The axis is the last input of ConcatV2
// and the first one of Concat.
struct Places {
  uint32_t first, end, axis;
  const char* axis_name;
};

template <bool kAxisFirst>
Places Find(uint32_t n_in) {
  return kAxisFirst ? Places{1, n_in, 0, "concat_dim"} : Places{0, n_in - 1, n_in - 1, "axis"};
}

// The output's size along the axis is the sum; the other sizes must agree.
MaybeDims Joined(const tw::Shape& s, const Places& at, int64_t axis) {
  MaybeDims out;
  int64_t sum = 0;
  for (uint32_t i = at.first; i < at.end; ++i) {
    MaybeDims in = In(s, i);
    if (!in) {
      sum = -1;
      continue;
    }
    const size_t k = static_cast<size_t>(Axis(axis, static_cast<int64_t>(in->size()), at.axis_name));
    sum = s.calc('+', sum, (*in)[k]);
    (*in)[k] = -1;
    out = Merge(s, out, in,
                "apart from '" + std::string(at.axis_name) + "' " + std::to_string(k) +
                    " the shapes of 'values' must agree: those before input " + std::to_string(i) + ", and its own,");
  }
  if (out) (*out)[static_cast<size_t>(Axis(axis, static_cast<int64_t>(out->size()), at.axis_name))] = sum;
  return out;
}

template <bool kAxisFirst>
void Rule(const tw::Shape& s) {
  const Places at = Find<kAxisFirst>(s.c->n_in);
  const std::optional<int64_t> axis = ScalarValue(s, at.axis, at.axis_name);
  MaybeDims ranked;
  for (uint32_t i = at.first; i < at.end; ++i) {
    WantRankAtLeast(s, i, 1, "values");
    if (!s.known(i)) continue;
    if (ranked && ranked->size() != static_cast<size_t>(s.rank(i)))
      Fail("'values' must all have one rank: " + Text(ranked) + " and " + tw::text(s.in(i)) + " differ");
    ranked = In(s, i);
  }
  if (axis)
    Set(s, 0, Joined(s, at, *axis));
  else if (ranked)
    s.out(0, Dims(ranked->size(), -1));
}

// Each input gets its slice of the gradient. A slice starts where the one before it ends.
void StepGradient(const tw::Grad& g, const Places& at) {
  const tw_edge rank = g.op("Size", {g.shape(at.first)});
  const tw_edge axis = g.op("FloorMod", {CastTo(g, g.x(at.axis), TW_INT32), rank});
  const tw_edge along = g.op("OneHot", {axis, rank, Int(g, 1), Int(g, 0)});
  tw_edge begin = g.op("ZerosLike", {along});
  for (uint32_t i = at.first; i < at.end; ++i) {
    g.dx(i, g.op("Slice", {g.dy(), begin, g.shape(i)}));
    if (i + 1 < at.end) begin = g.op("AddV2", {begin, g.op("Mul", {g.shape(i), along})});
  }
}

// Does the same with constants if the axis, the rank and the sizes along the axis are known; else
// returns false.
bool KnownGradient(const tw::Grad& g, const Places& at) {
  Dims axis;
  if (!g.value(at.axis, &axis) || !ShapeIn(g, at.first)) return false;
  const size_t rank = ShapeIn(g, at.first)->size(), k = static_cast<size_t>(Axis(axis[0], static_cast<int64_t>(rank), at.axis_name));
  for (uint32_t i = at.first; i < at.end; ++i)
    if (!ShapeIn(g, i) || !Known((*ShapeIn(g, i))[k])) return false;
  Dims begin(rank, 0), size(rank, -1);  // -1: up to the end
  for (uint32_t i = at.first; i < at.end; ++i) {
    size[k] = (*ShapeIn(g, i))[k];
    g.dx(i, g.op("Slice", {g.dy(), g.ints(begin), g.ints(size)}));
    begin[k] += size[k];
  }
  return true;
}

template <bool kAxisFirst>
void Gradient(const tw::Grad& g) {
  const Places at = Find<kAxisFirst>(g.inputs());
  if (!KnownGradient(g, at)) StepGradient(g, at);
}

// Checks shapes that must agree in all sizes except the one along the axis.
void OffsetRule(const tw::Shape& s) {
  const std::optional<int64_t> axis = ScalarValue(s, 0, "concat_dim");
  MaybeDims length;
  Dims first, sizes;
  for (uint32_t i = 1; i < s.c->n_in; ++i) {
    WantVector(s, i, "shape");
    length = Merge(s, length, In(s, i), "the lengths of the shapes before input " + tw::text(i) + ", and its own,");
  }
  for (uint32_t o = 0; o < s.c->n_out; ++o) s.out(o, Dims{length ? (*length)[0] : -1});
  if (!axis || !length || !Known((*length)[0])) return;
  const size_t k = static_cast<size_t>(Axis(*axis, (*length)[0], "concat_dim"));
  for (uint32_t i = 1; i < s.c->n_in; ++i) {
    if (!s.value(i, &sizes)) continue;
    if (first.empty()) first = sizes;
    for (size_t d = 0; d < sizes.size(); ++d)
      if (d != k && sizes[d] != first[d])
        Fail("the shapes " + Text(first) + " and " + Text(sizes) + " must agree apart from 'concat_dim' " + std::to_string(k));
  }
}

}  // namespace

void register_concat(tw::Plugin& p) {
  p.op<Gradient<false>, Rule<false>>("ConcatV2(values: T * N, axis: Tidx) -> (output: T); N: int >= 2; T: type; Tidx: " OPS_INDEX
                                     " = int32; role concat; ?axes values output; ?axis_numbers axis; ?data values; ?grows; doc \"tensors "
                                     "one after the other along an axis\"");
  p.op<Gradient<true>, Rule<true>>(R"(
      Concat(concat_dim: int32, values: T * N) -> (output: T); N: int >= 2; T: type; ?axes values output; ?axis_numbers concat_dim; ?data values;
      doc "ConcatV2 with the axis in front")");
  p.op<nullptr, OffsetRule>(
      "ConcatOffset(concat_dim: int32, shape: shape_type * N) -> (offset: shape_type * N); N: int >= 2; shape_type: " OPS_INDEX
      " = int32; no_gradient \"whole numbers\"; "
      "doc \"where tensors of these shapes begin in their concatenation: 0 but along the axis\"");
}

}  // namespace thalweg::ops
