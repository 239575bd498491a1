// SparseReorder sorts the stored elements of a sparse tensor by their indices.
#include "ops/common/grad.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

enum : uint32_t { kIndices, kValues, kShape };

void Rule(const tw::Shape& s) {
  WantRank(s, kIndices, 2, "input_indices");
  WantVector(s, kValues, "input_values");
  WantVector(s, kShape, "input_shape");
  const int64_t pairs = s.known(kIndices) ? s.dim(kIndices, 0) : -1, values = s.known(kValues) ? s.dim(kValues, 0) : -1;
  const int64_t depth = s.known(kIndices) ? s.dim(kIndices, 1) : -1, rank = s.known(kShape) ? s.dim(kShape, 0) : -1;
  const int64_t n = MergeSize(s, pairs, values, "the rows of 'input_indices' and the size of 'input_values'");
  s.out(0, {n, MergeSize(s, depth, rank, "the columns of 'input_indices' and the size of 'input_shape'")});
  s.out(1, {n});
  Dims sizes;
  if (!s.value(kShape, &sizes)) return;
  for (int64_t size : sizes)
    if (size < 0) Fail("'input_shape' is " + Text(sizes) + "; sizes must not be negative");
}

// Reordering the numbers of the elements gives the permutation to invert.
void Gradient(const tw::Grad& g) {
  const tw_edge count = g.op("Prod", {g.shape(kValues), Int(g, 0)}), numbers = g.op("Range", {Int(g, 0), count, Int(g, 1)});
  const tw_edge order = g.out(g.op("SparseReorder", {g.x(kIndices), numbers, g.x(kShape)}), 1);
  g.dx(kValues, g.op("GatherV2", {g.dy(1), g.op("InvertPermutation", {order}), Int(g, 0)}));
}

}  // namespace

void register_sparse_reorder(tw::Plugin& p) {
  p.op<Gradient, Rule>(
      "SparseReorder(input_indices: int64, input_values: T, input_shape: int64) -> (output_indices: int64, output_values: T); T: type; "
      "doc \"the elements of a sparse tensor in order of their places, by the first axis, then by the second, ...\"");
}

}  // namespace thalweg::ops
