// TopKV2 returns the largest elements of each row. InTopKV2 tells whether a target is among them.
#include "ops/common/grad.h"
#include "ops/common/types.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

void Rule(const tw::Shape& s) {
  WantRankAtLeast(s, 0, 1, "input");
  const std::optional<int64_t> k = ScalarValue(s, 1, "k");
  const MaybeDims in = In(s, 0);
  if (k && *k < 0) Fail("'k' is " + tw::text(*k) + "; it must not be negative");
  if (!in) return;
  if (k && Known(in->back()) && *k > in->back())
    Fail("'k' is " + tw::text(*k) + ", but the last axis of 'input', which is " + Text(in) + ", has no more than " + tw::text(in->back()) +
         " elements");
  Dims out = *in;
  out.back() = k.value_or(-1);
  s.out(0, out);
  s.out(1, out);
}

// Scatters dy to the places of the largest elements, in a vector of all rows. Places are 64-bit.
void Gradient(const tw::Grad& g) {
  const tw_edge dy = g.dy(), shape = CastTo(g, g.shape(0), TW_INT64), zero = Int(g, 0);
  const tw_edge n = g.op("Reshape", {Tail(g, shape, -1), Ints(g, {})}), size = g.op("Prod", {shape, zero});
  const tw_edge rows = g.op("Reshape", {g.op("Prod", {Head(g, shape, -1), zero}), Ints(g, {})});
  const tw_edge begins = g.op("Mul", {g.op("Range", {g.scalar(0, TW_INT64), rows, g.scalar(1, TW_INT64)}), n});
  const tw_edge k = CastTo(g, g.x(1), TW_INT32), table = g.op("Pack", {CastTo(g, rows, TW_INT32), k});
  const tw_edge places = g.op("AddV2", {g.op("Reshape", {CastTo(g, g.y(1), TW_INT64), table}), g.op("ExpandDims", {begins, Int(g, 1)})});
  const tw_edge flat = g.op("ScatterNd", {g.op("Reshape", {places, Ints(g, {-1, 1})}), g.op("Reshape", {dy, Ints(g, {-1})}),
                                          g.op("Reshape", {size, Ints(g, {1})})});
  g.dx(0, g.op("Reshape", {flat, g.shape(0)}));
}

void TargetRule(const tw::Shape& s) {
  WantRank(s, 0, 2, "predictions");
  WantVector(s, 1, "targets");
  ScalarValue(s, 2, "k");
  const int64_t rows = s.known(0) ? s.dim(0, 0) : -1, targets = s.known(1) ? s.dim(1, 0) : -1;
  s.out(0, {MergeSize(s, rows, targets, "the rows of 'predictions' and of 'targets'")});
}

}  // namespace

void register_top_k(tw::Plugin& p) {
  p.op<Gradient, Rule>(
      "TopKV2(input: T, k: Tk) -> (values: T, indices: index_type); sorted: bool = true; T: " OPS_REALS "; Tk: " OPS_INDEX_SHORT
      " = int32; index_type: " OPS_INDEX_SHORT
      " = int32; doc \"the k largest elements of the last axis and where they stand: the largest first if sorted, NaN before "
      "all numbers, the first of equals first\"");
  p.op<nullptr, TargetRule>("InTopKV2(predictions: float, targets: T, k: T) -> (precision: bool); T: " OPS_INDEX
                            " = int32; no_gradient \"truth values have no derivative\"; doc \"whether fewer than k classes of a row are "
                            "predicted above its target; no where the target is no class or a prediction is not finite\"");
}

}  // namespace thalweg::ops
