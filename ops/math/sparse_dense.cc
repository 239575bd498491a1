// Element-wise ops on a sparse and a dense tensor: SparseDenseCwiseAdd, -Mul and -Div give the
// results at the stored places, SparseTensorDenseAdd gives a dense sum.
#include "ops/common/grad.h"
#include "ops/common/sparse.h"
#include "ops/common/types.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

enum : uint32_t { kIndices, kValues, kShape, kDense };

void CwiseRule(const tw::Shape& s) {
  const SparsePart shape{kShape, "sp_shape"};
  const SparseCounts counts = WantSparse(s, {kIndices, "sp_indices"}, SparsePart{kValues, "sp_values"}, shape);
  const MaybeDims sizes = SparseSizes(s, shape), dense = In(s, kDense);
  if (dense && Known(counts.rank) && int64_t(dense->size()) > counts.rank)
    Fail("'dense' is " + Text(dense) + " and the sparse tensor has " + tw::text(counts.rank) + " axes; only 'dense' broadcasts");
  if (dense && sizes)
    for (size_t k = 1; k <= dense->size(); ++k) {
      const int64_t mine = (*sizes)[sizes->size() - k], other = (*dense)[dense->size() - k];
      if (Known(other) && other != 1 && other != mine)
        Fail("'dense' " + Text(dense) + " does not broadcast to the sparse tensor's " + Text(sizes) + ": sizes " + tw::text(other) +
             " and " + tw::text(mine) + " at axis -" + std::to_string(k));
    }
  s.out(0, Dims{counts.elements});
}

// The places of the stored elements in the dense tensor: the last columns, and 0 where it has size 1.
class DensePlaces {
 public:
  explicit DensePlaces(const tw::Grad& g) : g_(g) {
    const tw_edge shape = g.shape(kDense), rank = g.op("Reshape", {g.op("Size", {shape}), Ints(g, {1})});
    const tw_edge begin = Concat(g, {Ints(g, {0}), g.op("Sub", {g.shape(kShape), rank})});
    const tw_edge columns = g.op("Slice", {g.x(kIndices), begin, Ints(g, {-1, -1})});
    sizes_ = CastTo(g, shape, TW_INT64);
    places_ = g.op("Mul", {columns, CastTo(g, g.op("Greater", {sizes_, g.scalar(1, TW_INT64)}), TW_INT64)});
  }
  tw_edge Take(tw_edge dense) const { return g_.op("GatherNd", {dense, places_}); }
  tw_edge Sum(tw_edge values) const { return g_.op("ScatterNd", {places_, values, sizes_}); }

 private:
  const tw::Grad& g_;
  tw_edge places_, sizes_;
};

void CwiseAddGradient(const tw::Grad& g) {
  g.dx(kValues, g.dy());
  g.dx(kDense, DensePlaces(g).Sum(g.dy()));
}

void CwiseMulGradient(const tw::Grad& g) {
  const DensePlaces places(g);
  g.dx(kValues, g.op("Mul", {g.dy(), Conj(g, places.Take(g.x(kDense)))}));
  g.dx(kDense, places.Sum(g.op("Mul", {g.dy(), Conj(g, g.x(kValues))})));
}

void CwiseDivGradient(const tw::Grad& g) {
  const DensePlaces places(g);
  const tw_edge divisors = Conj(g, places.Take(g.x(kDense))), dx = g.op("RealDiv", {g.dy(), divisors});
  g.dx(kValues, dx);
  g.dx(kDense, places.Sum(g.op("Neg", {g.op("Mul", {dx, g.op("RealDiv", {Conj(g, g.x(kValues)), divisors})})})));
}

void SumRule(const tw::Shape& s) {
  const SparsePart shape{kShape, "a_shape"};
  const int64_t rank = WantSparse(s, {kIndices, "a_indices"}, SparsePart{kValues, "a_values"}, shape).rank;
  MaybeDims sizes = SparseSizes(s, shape);
  if (!sizes && Known(rank)) sizes = Dims(size_t(rank), -1);
  Set(s, 0, Merge(s, sizes, In(s, kDense), "'a_shape' and the shape of 'b', which must be equal,"));
}

void SumGradient(const tw::Grad& g) {
  g.dx(kValues, g.op("GatherNd", {g.dy(), g.x(kIndices)}));
  g.dx(kDense, g.dy());
}

#define CWISE "(sp_indices: int64, sp_values: T, sp_shape: int64, dense: T) -> (output: T); T: " OPS_NUMBERS "; ?data sp_values dense; "

}  // namespace

void register_sparse_dense(tw::Plugin& p) {
  p.op<CwiseAddGradient, CwiseRule>("SparseDenseCwiseAdd" CWISE
                                    "doc \"the stored elements of a sparse tensor, plus those of a dense one at "
                                    "their places\"");
  p.op<CwiseMulGradient, CwiseRule>("SparseDenseCwiseMul" CWISE
                                    "doc \"the stored elements of a sparse tensor, times those of a dense one at "
                                    "their places\"");
  p.op<CwiseDivGradient, CwiseRule>("SparseDenseCwiseDiv" CWISE
                                    "doc \"the stored elements of a sparse tensor, divided by those of a dense one "
                                    "at their places\"");
  p.op<SumGradient, SumRule>(
      "SparseTensorDenseAdd(a_indices: Tindices, a_values: T, a_shape: Tindices, b: T) -> (output: T); T: " OPS_NUMBERS
      "; Tindices: " OPS_INDEX "; ?data a_values b; doc \"the sum of a sparse and a dense tensor, dense\"");
}

}  // namespace thalweg::ops
