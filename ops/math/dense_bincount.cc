// DenseBincount and RaggedBincount count how often numbers occur in each row.
#include "ops/common/grad.h"
#include "ops/common/types.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

int64_t Bins(const tw::Shape& s, uint32_t i) {
  const std::optional<int64_t> size = ScalarValue(s, i, "size");
  if (size && *size < 0) Fail("'size' is " + tw::text(*size) + "; it must not be negative");
  return size.value_or(-1);
}

// Checks that there is a weight for each number, or none at all.
void CheckWeights(const tw::Shape& s, uint32_t numbers, uint32_t weights) {
  const MaybeDims arr = In(s, numbers), given = In(s, weights);
  if (!AllKnown(arr) || !AllKnown(given)) return;
  const int64_t count = Product(s, *given);
  if (count != 0 && *given != *arr)
    Fail("'weights' is " + Text(given) + ", which is neither empty nor one for each of the numbers, " + Text(arr));
}

void DenseRule(const tw::Shape& s) {
  WantRankAtLeast(s, 0, 1, "input");
  if (s.known(0) && s.rank(0) > 2) Fail("'input' is " + tw::text(s.in(0)) + "; it must be a vector or a matrix");
  const int64_t size = Bins(s, 1);
  CheckWeights(s, 0, 2);
  const MaybeDims in = In(s, 0);
  if (in) s.out(0, in->size() == 1 ? Dims{size} : Dims{(*in)[0], size});
}

void RaggedRule(const tw::Shape& s) {
  WantVector(s, 0, "splits");
  WantVector(s, 1, "values");
  const int64_t size = Bins(s, 2), ends = s.known(0) ? s.dim(0, 0) : -1;
  CheckWeights(s, 1, 3);
  if (ends == 0) Fail("'splits' is empty; it needs at least one entry");
  s.out(0, Dims{s.calc('-', ends, 1), size});
}

// A weight gets the gradient of its bin. Numbers beyond the last bin use one bin more in each row,
// with gradient 0. rows: the row of each number, an int32 vector.
void WeightGradient(const tw::Grad& g, tw_edge numbers, tw_edge size, tw_edge rows, uint32_t weights) {
  const tw_edge dy = g.dy(), flat = CastTo(g, g.op("Reshape", {numbers, Ints(g, {-1})}), TW_INT64), n = CastTo(g, size, TW_INT64);
  const tw_edge one = g.scalar(1, TW_INT64), width = g.op("AddV2", {n, one});
  const tw_edge zeros = g.op("ZerosLike", {ShapeOf(g, dy)}), last = Concat(g, {Tail(g, zeros, 1), Ints(g, {1})});  // [0, ..., 1]
  const tw_edge bins = g.op("Reshape", {g.op("Pad", {dy, g.op("Pack", {zeros, last}, {{"axis", 1}})}), Ints(g, {-1})});
  const tw_edge at = g.op("AddV2", {g.op("Mul", {CastTo(g, rows, TW_INT64), width}), g.op("Minimum", {flat, n})});
  // No weights: none of the numbers.
  const tw_edge count = g.op("Prod", {g.shape(weights), Int(g, 0)});
  const tw_edge kept = g.op("Slice", {at, Ints(g, {0}), g.op("Reshape", {count, Ints(g, {1})})});
  g.dx(weights, g.op("Reshape", {g.op("GatherV2", {bins, kept, Int(g, 0)}), g.shape(weights)}));
}

void DenseGradient(const tw::Grad& g) {
  if (g.b("binary_output")) return;
  const tw_edge count = g.op("Prod", {g.shape(0), Int(g, 0)}), columns = g.op("Reshape", {Tail(g, g.shape(0), -1), Ints(g, {})});
  const tw_edge rows = g.op("FloorDiv", {g.op("Range", {Int(g, 0), count, Int(g, 1)}), columns});
  WeightGradient(g, g.x(0), g.x(1), rows, 2);
}

void RaggedGradient(const tw::Grad& g) {
  if (g.b("binary_output")) return;
  const tw_edge splits = g.x(0), count = g.op("Prod", {g.shape(1), Int(g, 0)});
  // The row of number i is the number of ends, splits[1:], that are not above i.
  const tw_edge numbers = CastTo(g, g.op("Range", {Int(g, 0), count, Int(g, 1)}), TW_INT64);
  const tw_edge ended = g.op("LessEqual", {g.op("ExpandDims", {Tail(g, splits, 1), Int(g, 0)}), g.op("ExpandDims", {numbers, Int(g, 1)})});
  WeightGradient(g, g.x(1), g.x(2), g.op("Sum", {CastTo(g, ended, TW_INT32), Int(g, 1)}), 3);
}

#define TYPES "Tidx: " OPS_INDEX "; T: {int32, int64, float, double}; binary_output: bool = false; "

}  // namespace

void register_dense_bincount(tw::Plugin& p) {
  p.op<DenseGradient, DenseRule>(
      "DenseBincount(input: Tidx, size: Tidx, weights: T) -> (output: T); " TYPES
      "doc \"how often each number below size occurs in a row, or the sum of its weights, or whether it occurs\"");
  p.op<RaggedGradient, RaggedRule>(
      "RaggedBincount(splits: int64, values: Tidx, size: Tidx, weights: T) -> (output: T); " TYPES
      "doc \"DenseBincount of rows of different lengths: row i is values[splits[i]] to values[splits[i + 1] - 1]\"");
}

}  // namespace thalweg::ops
