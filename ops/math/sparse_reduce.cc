// Reductions of sparse tensors over chosen axes: SparseReduceSum and SparseReduceMax with a dense
// result, SparseReduceSumSparse and SparseReduceMaxSparse with a sparse one. Only stored elements
// take part; where there are none, the dense result is 0.
#include "ops/common/grad.h"
#include "ops/common/sparse.h"
#include "ops/common/types.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

enum : uint32_t { kIndices, kValues, kShape, kAxes };

// Returns for each axis whether it is reduced; all are if `axes` is empty.
std::vector<bool> Reduced(const Dims& axes, size_t rank) {
  std::vector<bool> reduced(rank, axes.empty());
  for (int64_t axis : axes) reduced[size_t(Axis(axis, int64_t(rank), "reduction_axes"))] = true;
  return reduced;
}

// Checks the inputs. Returns the sizes of the dense result; -1 for sizes, nullopt for a rank that
// is not known.
MaybeDims ResultDims(const tw::Shape& s) {
  const SparsePart shape{kShape, "input_shape"};
  const int64_t rank = WantSparse(s, {kIndices, "input_indices"}, SparsePart{kValues, "input_values"}, shape).rank;
  if (s.known(kAxes) && s.rank(kAxes) > 1) Fail("'reduction_axes' must be a scalar or a vector but has shape " + tw::text(s.in(kAxes)));
  const bool keep = s.b("keep_dims");
  Dims axes;
  if (!Known(rank)) return std::nullopt;
  if (!s.value(kAxes, &axes)) return keep ? MaybeDims(Dims(size_t(rank), -1)) : std::nullopt;
  const std::vector<bool> reduced = Reduced(axes, size_t(rank));
  const Dims sizes = SparseSizes(s, shape).value_or(Dims(size_t(rank), -1));
  Dims out;
  for (size_t k = 0; k < reduced.size(); ++k) {
    if (!reduced[k])
      out.push_back(sizes[k]);
    else if (keep)
      out.push_back(1);
  }
  return out;
}

void DenseRule(const tw::Shape& s) {
  const MaybeDims out = ResultDims(s);
  if (out) Product(s, *out);
  Set(s, 0, out);
}

void SparseRule(const tw::Shape& s) {
  const MaybeDims out = ResultDims(s);
  const int64_t rank = out ? int64_t(out->size()) : -1;
  s.out(0, Dims{-1, rank});
  s.out(1, Dims{-1});
  s.out(2, Dims{rank});
}

// Takes entries of the dense result, or of values of its shape, for the stored elements.
class Spread {
 public:
  explicit Spread(const tw::Grad& g) : g_(g) {
    const tw_edge kept = Kept();  // int64, 1 for the axes that stay
    const tw_edge one = g.scalar(1, TW_INT64);
    shape_ = g.op("AddV2", {g.op("Mul", {g.x(kShape), kept}), g.op("Sub", {one, kept})});
    places_ = g.op("Mul", {g.x(kIndices), kept});
  }
  tw_edge Take(tw_edge dense) const { return g_.op("GatherNd", {g_.op("Reshape", {dense, shape_}), places_}); }

 private:
  tw_edge Kept() const {
    const MaybeDims shape = ShapeIn(g_, kShape);
    Dims axes;
    if (AllKnown(shape) && g_.value(kAxes, &axes)) {
      Dims kept;
      for (bool reduced : Reduced(axes, size_t((*shape)[0]))) kept.push_back(reduced ? 0 : 1);
      return g_.ints(kept, TW_INT64);
    }
    const tw_edge rank = g_.op("Reshape", {g_.shape(kShape), Ints(g_, {})});
    const tw_edge from_front = g_.op("Reshape", {g_.op("FloorMod", {g_.x(kAxes), rank}), Ints(g_, {-1})});
    const tw_edge count = g_.op("Size", {from_front}), rows = g_.op("Reshape", {from_front, Ints(g_, {-1, 1})});
    const tw_edge marks = g_.op("ScatterNd", {rows, Ones(g_, count), g_.shape(kShape)});
    const tw_edge kept = g_.op("LogicalAnd", {g_.op("Equal", {marks, Int(g_, 0)}), g_.op("Greater", {count, Int(g_, 0)})});
    return CastTo(g_, kept, TW_INT64);
  }

  const tw::Grad& g_;
  tw_edge shape_, places_;
};

void SumGradient(const tw::Grad& g) { g.dx(kValues, Spread(g).Take(g.dy())); }

// Elements that are equally large share what arrives.
void MaxGradient(const tw::Grad& g) {
  const Spread spread(g);
  const tw_edge largest = CastTo(g, g.op("Equal", {g.x(kValues), spread.Take(g.y())}), g.type_in(kValues));
  const tw_edge counts = g.op("SparseReduceSum", {g.x(kIndices), largest, g.x(kShape), g.x(kAxes)}, {{"keep_dims", g.b("keep_dims")}});
  g.dx(kValues, g.op("RealDiv", {g.op("Mul", {spread.Take(g.dy()), largest}), spread.Take(counts)}));
}

#define REDUCED "(input_indices: int64, input_values: T, input_shape: int64, reduction_axes: int32) -> ("
#define REDUCED_SPARSE(name, types, of)                                                                            \
  name REDUCED "output_indices: int64, output_values: T, output_shape: int64); keep_dims: bool = false; T: " types \
               "; ?data input_values; no_gradient \"the op with a dense result has one\"; doc \"the " of           \
               " of the stored "                                                                                   \
               "elements over some axes, as a sparse tensor\""

}  // namespace

void register_sparse_reduce(tw::Plugin& p) {
  p.op<SumGradient, DenseRule>("SparseReduceSum" REDUCED "output: T); keep_dims: bool = false; T: " OPS_NUMBERS
                               "; ?data input_values; doc \"the sum of the stored elements over some axes, dense\"");
  p.op<MaxGradient, DenseRule>("SparseReduceMax" REDUCED "output: T); keep_dims: bool = false; T: " OPS_REALS
                               "; ?data input_values; doc \"the largest of the stored elements over some axes, dense; 0 where there are "
                               "none\"");
  p.op<nullptr, SparseRule>(REDUCED_SPARSE("SparseReduceSumSparse", OPS_NUMBERS, "sum"));
  p.op<nullptr, SparseRule>(REDUCED_SPARSE("SparseReduceMaxSparse", OPS_REALS, "largest"));
}

}  // namespace thalweg::ops
