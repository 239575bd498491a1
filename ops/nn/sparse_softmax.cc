// SparseSoftmax: softmax over the stored elements of each row of a sparse tensor.
#include "ops/common/grad.h"
#include "ops/common/sparse.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

enum : uint32_t { kIndices, kValues, kShape };

void Rule(const tw::Shape& s) {
  const SparsePart shape{kShape, "sp_shape"};
  const SparseCounts counts = WantSparse(s, {kIndices, "sp_indices"}, SparsePart{kValues, "sp_values"}, shape);
  if (Known(counts.rank) && counts.rank < 2)
    Fail("the sparse tensor has " + tw::text(counts.rank) + (counts.rank == 1 ? " axis" : " axes") +
         "; rows need a matrix or a batch of matrices");
  s.out(0, Dims{counts.elements});
}

// dx = y * (dy - the sum of y * dy over the row).
void Gradient(const tw::Grad& g) {
  const tw_edge y = g.y(), dy = g.dy();
  const tw_edge sums = g.op("SparseReduceSum", {g.x(kIndices), g.op("Mul", {y, dy}), g.x(kShape), Ints(g, {-1})});
  const tw_edge rows =
      g.op("StridedSlice", {g.x(kIndices), Ints(g, {0, 0}), Ints(g, {0, -1}), Ints(g, {1, 1})}, {{"begin_mask", 3}, {"end_mask", 1}});
  g.dx(kValues, g.op("Mul", {y, g.op("Sub", {dy, g.op("GatherNd", {sums, rows})})}));
}

}  // namespace

void register_sparse_softmax(tw::Plugin& p) {
  p.op<Gradient, Rule>(
      "SparseSoftmax(sp_indices: int64, sp_values: T, sp_shape: int64) -> (output: T); T: {half, float, double}; ?data sp_values; "
      "doc \"softmax over the stored elements of each row\"");
}

}  // namespace thalweg::ops
