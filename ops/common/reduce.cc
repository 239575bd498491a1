#include "ops/common/reduce.h"

#include <algorithm>

namespace thalweg::ops {
namespace {

// Returns for each axis of a shape of that rank whether it is reduced.
std::vector<bool> Reduced(const Dims& axes, size_t rank) {
  std::vector<bool> reduced(rank, false);
  for (int64_t axis : axes) {
    const size_t k = static_cast<size_t>(Axis(axis, static_cast<int64_t>(rank), "reduction_indices"));
    if (reduced[k]) Fail("'reduction_indices' is " + Text(axes) + ", which names axis " + std::to_string(k) + " twice");
    reduced[k] = true;
  }
  return reduced;
}

// Returns input 0's shape vector with 1 for the reduced axes, computed in the step.
tw_edge KeptShape(const tw::Grad& g) {
  const tw_edge shape = g.shape(0), rank = g.op("Size", {shape});
  const tw_edge axes = g.op("FloorMod", {CastTo(g, g.x(1), TW_INT32), rank});
  const tw_edge rows = g.op("Reshape", {axes, Ints(g, {-1, 1})});
  const tw_edge marks = g.op("ScatterNd", {rows, Ones(g, g.op("Size", {axes})), g.op("Reshape", {rank, Ints(g, {1})})});
  return g.op("SelectV2", {g.op("Equal", {marks, Int(g, 0)}), shape, Int(g, 1)});
}

// The same while the graph is built, with at most one -1, which a reshape infers.
bool KnownKeptShape(const tw::Grad& g, Dims* kept) {
  const MaybeDims in = ShapeIn(g, 0);
  Dims axes;
  if (!in || !g.value(1, &axes)) return false;
  const std::vector<bool> reduced = Reduced(axes, in->size());
  *kept = *in;
  for (size_t k = 0; k < kept->size(); ++k)
    if (reduced[k]) (*kept)[k] = 1;
  const auto unknown = std::count_if(kept->begin(), kept->end(), [](int64_t size) { return !Known(size); });
  // With a size of 0, a reshape cannot infer -1.
  return unknown == 0 || (unknown == 1 && std::find(kept->begin(), kept->end(), 0) == kept->end());
}

}  // namespace

void ReduceRule(const tw::Shape& s) {
  if (s.known(1) && s.rank(1) > 1) Fail("'reduction_indices' must be a scalar or a vector but has shape " + tw::text(s.in(1)));
  const MaybeDims in = In(s, 0);
  const bool keep = s.b("keep_dims");
  if (!in) return;
  Dims axes;
  if (!s.value(1, &axes)) {
    if (keep) s.out(0, Dims(in->size(), -1));
    return;
  }
  const std::vector<bool> reduced = Reduced(axes, in->size());
  Dims out;
  for (size_t k = 0; k < in->size(); ++k) {
    if (!reduced[k])
      out.push_back((*in)[k]);
    else if (keep)
      out.push_back(1);
  }
  s.out(0, out);
}

tw_edge KeepAxes(const tw::Grad& g, tw_edge e) {
  const MaybeDims out = ShapeOut(g, 0);
  if (g.b("keep_dims") || (out && out->empty())) return e;  // a scalar broadcasts unchanged
  Dims kept;
  if (!KnownKeptShape(g, &kept)) return g.op("Reshape", {e, KeptShape(g)});
  for (int64_t& size : kept) size = std::max<int64_t>(size, -1);
  return g.op("Reshape", {e, Ints(g, kept)});
}

tw_edge SpreadOut(const tw::Grad& g, tw_edge e) {
  if (SameShape(ShapeIn(g, 0), ShapeOut(g, 0))) return e;
  return g.op("BroadcastTo", {KeepAxes(g, e), g.shape(0)});
}

}  // namespace thalweg::ops
