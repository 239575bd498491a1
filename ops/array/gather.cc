// GatherV2 picks slices of a tensor by index along an axis; Gather does so along the first axis.
#include "ops/common/gather.h"

#include "ops/common/types.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

void Rule(const tw::Shape& s) {
  WantRankAtLeast(s, 0, 1, "params");
  const std::optional<int64_t> axis = ScalarValue(s, 2, "axis");
  if (axis && s.known(0)) Axis(*axis, s.rank(0), "axis");
  Set(s, 0, GatheredShape(s, In(s, 0), In(s, 1), axis, s.i("batch_dims")));
}

// The gradient is sparse if the op picks whole rows, as an embedding lookup does.
void Gradient(const tw::Grad& g) {
  const MaybeDims params = ShapeIn(g, 0), indices = ShapeIn(g, 1);
  int64_t batch = g.i("batch_dims");
  if (batch < 0) {
    if (!indices)
      throw tw::Error{TW_UNIMPLEMENTED,
                      "to differentiate a negative batch_dims the rank of indices must be known; count it from the front"};
    batch += static_cast<int64_t>(indices->size());
  }
  Dims axis;
  const bool known = g.value(2, &axis);
  const bool first =
      (known && axis[0] == 0) || (params && params->size() == 1) || (known && params && axis[0] == -static_cast<int64_t>(params->size()));
  if (batch == 0 && first) return SparseRows(g, [&] { return Tail(g, g.shape(0), 1); });
  const tw_edge shape = g.shape(0);
  const tw_edge from_front = g.op("FloorMod", {CastTo(g, g.x(2), TW_INT32), g.op("Size", {shape})});
  g.dx(0, ScatterBack(g, shape, from_front, batch));
}

void RowsRule(const tw::Shape& s) {
  WantRankAtLeast(s, 0, 1, "params");
  Set(s, 0, GatheredShape(s, In(s, 0), In(s, 1), 0, 0));
}

void RowsGradient(const tw::Grad& g) {
  SparseRows(g, [&] { return Tail(g, g.shape(0), 1); });
}

}  // namespace

void register_gather(tw::Plugin& p) {
  p.op<Gradient, Rule>(
      "GatherV2(params: Tparams, indices: Tindices, axis: Taxis) -> (output: Tparams); batch_dims: int = 0; Tparams: type; "
      "Tindices: " OPS_INDEX_SHORT "; Taxis: " OPS_INDEX
      "; "
      "?data params; ?grows; doc \"params[..., indices, ...]: positions along an axis picked by index; indices must be inside\"");
  p.op<RowsGradient, RowsRule>(
      "Gather(params: Tparams, indices: Tindices) -> (output: Tparams); validate_indices: bool = true; Tparams: type; "
      "Tindices: " OPS_INDEX "; ?data params; ?grows; doc \"params[indices]: rows picked by index, which is always checked\"");
}

}  // namespace thalweg::ops
