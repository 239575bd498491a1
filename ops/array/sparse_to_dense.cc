// SparseToDense makes a tensor with the default value everywhere except at the listed places.
#include "ops/common/grad.h"
#include "ops/common/types.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

enum : uint32_t { kIndices, kShape, kValues, kDefault };

void WantRankAtMost(const tw::Shape& s, uint32_t i, int32_t rank, const char* name) {
  if (s.known(i) && s.rank(i) > rank)
    Fail("'" + std::string(name) + "' is " + tw::text(s.in(i)) + "; it must have " + tw::text(rank) + (rank == 1 ? " axis" : " axes") +
         " at most");
}

void Rule(const tw::Shape& s) {
  WantRankAtMost(s, kIndices, 2, "sparse_indices");
  WantRankAtMost(s, kValues, 1, "sparse_values");
  WantScalar(s, kDefault, "default_value");
  const MaybeDims indices = In(s, kIndices), values = In(s, kValues), out = ShapeValue(s, kShape, "output_shape");
  if (indices && s.known(kShape))
    MergeSize(s, indices->size() < 2 ? 1 : (*indices)[1], s.dim(kShape, 0), "the length of an index and the size of 'output_shape'");
  if (indices && values && values->size() == 1)
    MergeSize(s, indices->empty() ? 1 : (*indices)[0], (*values)[0], "the number of indices and that of 'sparse_values'");
  Set(s, 0, out);
}

// A value gets the gradient of its place, unless a later value replaced it there. The default gets
// the sum of the gradient over all other places.
void Gradient(const tw::Grad& g) {
  const tw_edge indices = g.x(kIndices), shape = g.x(kShape), dy = g.dy();
  const auto sent = [&](tw_edge values, tw_edge other) {
    return g.op("SparseToDense", {indices, shape, values, other}, {{"validate_indices", false}});
  };
  g.dx(kDefault, SumWhere(g, sent(g.scalar(0, TW_BOOL), g.scalar(1, TW_BOOL)), dy));

  const tw_edge rows = Head(g, Concat(g, {g.shape(kIndices), Ints(g, {1})}), 1);
  const tw_edge places = g.op("Reshape", {indices, Concat(g, {rows, g.shape(kShape)})});
  tw_edge picked = g.op("GatherNd", {dy, places});
  if (!g.b("validate_indices")) {
    const tw_edge numbers = g.op("Range", {Int(g, 0), g.op("Prod", {rows, Int(g, 0)}), Int(g, 1)});
    const tw_edge last = g.op("Equal", {g.op("GatherNd", {sent(numbers, Int(g, -1)), places}), numbers});
    picked = g.op("SelectV2", {last, picked, Number(g, 0, picked)});
  }
  g.dx(kValues, SumTo(g, picked, kValues, DimsOf(g, picked)));
}

}  // namespace

void register_sparse_to_dense(tw::Plugin& p) {
  p.op<Gradient, Rule>(
      "SparseToDense(sparse_indices: Tindices, output_shape: Tindices, sparse_values: T, default_value: T) -> (dense: T); "
      "validate_indices: bool = true; T: type; Tindices: " OPS_INDEX
      "; doc \"default_value everywhere but sparse_values[i] at sparse_indices[i]\"");
}

}  // namespace thalweg::ops
