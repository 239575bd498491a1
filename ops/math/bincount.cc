// Bincount counts how often numbers occur.
#include "ops/common/grad.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

void Rule(const tw::Shape& s) {
  const std::optional<int64_t> size = ScalarValue(s, 1, "size");
  if (size && *size < 0) Fail("'size' is " + tw::text(*size) + "; it must not be negative");
  const MaybeDims arr = In(s, 0), weights = In(s, 2);
  if (AllKnown(arr) && AllKnown(weights)) {
    const int64_t count = Product(s, *weights);
    if (count != 0 && count != Product(s, *arr))
      Fail("'weights' is " + Text(weights) + ", which is neither empty nor one for each element of 'arr', " + Text(arr));
  }
  s.out(0, {size.value_or(-1)});
}

// A weight gets the gradient of its bin. Numbers too large for any bin use one more bin, with
// gradient 0. Empty weights get no gradient.
void Gradient(const tw::Grad& g) {
  const tw_edge bins = Concat(g, {g.dy(), g.op("Reshape", {Number(g, 0, g.dy()), Ints(g, {1})})});
  const tw_edge flat = g.op("Reshape", {g.x(0), Ints(g, {-1})});
  const tw_edge weighted = g.op("Slice", {flat, Ints(g, {0}), g.op("Reshape", {g.op("Prod", {g.shape(2), Int(g, 0)}), Ints(g, {1})})});
  g.dx(2, g.op("Reshape", {g.op("GatherV2", {bins, g.op("Minimum", {weighted, g.x(1)}), Int(g, 0)}), g.shape(2)}));
}

}  // namespace

void register_bincount(tw::Plugin& p) {
  p.op<Gradient, Rule>(
      "Bincount(arr: int32, size: int32, weights: T) -> (bins: T); T: {int32, int64, float, double}; "
      "doc \"bins[k], k < size, is the sum of the weights where arr is k, or how often it is if there are no weights\"");
}

}  // namespace thalweg::ops
