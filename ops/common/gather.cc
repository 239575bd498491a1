#include "ops/common/gather.h"

namespace thalweg::ops {
namespace {

tw_edge AsVector(const tw::Grad& g, tw_edge scalar) { return g.op("Reshape", {scalar, Ints(g, {1})}); }

// Returns the product of vector[from .. to).
tw_edge ProductOf(const tw::Grad& g, tw_edge vector, tw_edge from, tw_edge to) {
  return g.op("Prod", {g.op("StridedSlice", {vector, from, to, Ints(g, {1})}), Int(g, 0)});
}

}  // namespace

MaybeDims GatheredShape(const tw::Shape& s, const MaybeDims& params, const MaybeDims& indices, std::optional<int64_t> axis, int64_t batch) {
  if (!indices) return std::nullopt;
  const int64_t index_rank = static_cast<int64_t>(indices->size());
  if (batch < -index_rank || batch > index_rank)
    Fail("'batch_dims' is " + tw::text(batch) + ", but 'indices' is " + Text(indices) + "; it must be in [" + tw::text(-index_rank) + ", " +
         tw::text(index_rank) + "]");
  if (batch < 0) batch += index_rank;
  if (!params) return std::nullopt;
  const int64_t rank = static_cast<int64_t>(params->size());
  if (batch >= rank) Fail("'batch_dims' is " + tw::text(batch) + ", which leaves nothing to gather from: the params are " + Text(params));
  const size_t common = static_cast<size_t>(batch);
  const MaybeDims front = Merge(s, Sub(*params, 0, common), Sub(*indices, 0, common), "the first batch_dims axes of params and indices");
  if (!axis) return Dims(static_cast<size_t>(rank + index_rank - 1 - batch), -1);
  const size_t k = static_cast<size_t>(Axis(*axis, rank, "axis"));
  if (k < common) Fail("'axis' is " + tw::text(*axis) + ", one of the first " + tw::text(batch) + " axes, which 'batch_dims' takes");
  const Dims outer = Join(*front, Sub(*params, common, k));
  return Join(outer, Join(Sub(*indices, common, indices->size()), Sub(*params, k + 1, params->size())));
}

void CheckBadIndicesPolicy(const tw::Attrs& a) {
  const std::string_view policy = a.s("bad_indices_policy");
  if (policy != "" && policy != "DEFAULT" && policy != "ERROR" && policy != "IGNORE")
    Fail("'bad_indices_policy' is \"" + std::string(policy) + "\"; it must be empty, \"DEFAULT\", \"ERROR\" or \"IGNORE\"");
}

int64_t IndexLength(const MaybeDims& indices, const MaybeDims& params, const char* name) {
  const int64_t length = indices->back();
  if (params && Known(length) && length > static_cast<int64_t>(params->size()))
    Fail("'indices' is " + Text(indices) + ", index vectors of " + tw::text(length) + " entries, but '" + std::string(name) + "' is " +
         Text(params) + ", which has fewer axes");
  return length;
}

void SparseRows(const tw::Grad& g, const std::function<tw_edge()>& inner) {
  const MaybeDims indices = ShapeIn(g, 1);
  tw_edge rows = g.x(1), values = g.dy();
  if (g.type_in(1) == TW_INT16) rows = CastTo(g, rows, TW_INT32);
  if (!indices || indices->size() != 1) {
    rows = g.op("Reshape", {rows, Ints(g, {-1})});
    values = g.op("Reshape", {values, Concat(g, {AsVector(g, g.op("Prod", {g.shape(1), Int(g, 0)})), inner()})});
  }
  g.dx_sparse(0, rows, values);
}

// Named by letters, params is [B, O, D, N], indices is [B, I], and dy is [B, O, I, N]. Adds rows
// (B, I) of dy to rows (B, D) of the result, where each row is a block [O, N].
tw_edge ScatterBack(const tw::Grad& g, tw_edge shape, tw_edge axis, int64_t batch) {
  const tw_edge at = AsVector(g, axis), next = g.op("AddV2", {at, Ints(g, {1})});
  const tw_edge b = ProductOf(g, shape, Ints(g, {0}), Ints(g, {batch})), o = ProductOf(g, shape, Ints(g, {batch}), at);
  const tw_edge d = ProductOf(g, shape, at, next),
                n = g.op("Prod", {g.op("StridedSlice", {shape, next, Ints(g, {0}), Ints(g, {1})}, {{"end_mask", 1}}), Int(g, 0)});
  const tw_edge i = g.op("Prod", {Tail(g, g.shape(1), batch), Int(g, 0)});
  auto pack = [&](const std::vector<tw_edge>& sizes) { return g.op("Pack", sizes); };
  auto swap = [&](tw_edge e) { return g.op("Transpose", {e, Ints(g, {0, 2, 1, 3})}); };

  tw_edge ids = g.x(1);
  if (g.type_in(1) == TW_INT16) ids = CastTo(g, ids, TW_INT32);
  if (batch > 0) {  // number the rows across all batches
    const tw_edge first = g.op("Mul", {g.op("Range", {Int(g, 0), b, Int(g, 1)}), d});
    ids = g.op("AddV2", {g.op("Reshape", {ids, pack({b, i})}), CastTo(g, g.op("Reshape", {first, pack({b, Int(g, 1)})}), TypeOf(g, ids))});
  }
  const tw_edge blocks = g.op("Reshape", {swap(g.op("Reshape", {g.dy(), pack({b, o, i, n})})), pack({g.op("Mul", {b, i}), o, n})});
  const tw_edge sums = g.op("UnsortedSegmentSum", {blocks, g.op("Reshape", {ids, Ints(g, {-1})}), g.op("Mul", {b, d})});
  return g.op("Reshape", {swap(g.op("Reshape", {sums, pack({b, d, o, n})})), shape});
}

}  // namespace thalweg::ops
