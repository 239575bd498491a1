// GatherNd picks elements or blocks by index vectors. ScatterNd adds blocks to zeros by index
// vectors. Each is the gradient of the other.
#include "ops/common/gather.h"
#include "ops/common/types.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

void GatherRule(const tw::Shape& s) {
  CheckBadIndicesPolicy(s);
  WantRankAtLeast(s, 1, 1, "indices");
  const MaybeDims params = In(s, 0), indices = In(s, 1);
  if (!indices) return;
  const int64_t length = IndexLength(indices, params, "params");
  if (!params || !Known(length)) return;
  s.out(0, Join(Sub(*indices, 0, indices->size() - 1), Sub(*params, static_cast<size_t>(length), params->size())));
}

void ScatterRule(const tw::Shape& s) {
  CheckBadIndicesPolicy(s);
  WantRankAtLeast(s, 0, 1, "indices");
  const MaybeDims indices = In(s, 0), updates = In(s, 1), out = ShapeValue(s, 2, "shape");
  if (indices) {
    const int64_t length = IndexLength(indices, out, "shape");
    if (out && Known(length)) {
      const Dims block = Sub(*out, static_cast<size_t>(length), out->size());
      Merge(s, updates, Join(Sub(*indices, 0, indices->size() - 1), block),
            "the shape of 'updates' and what 'indices' and 'shape' ask for");
    }
  }
  Set(s, 0, out);
}

void GatherGradient(const tw::Grad& g) {
  const uint32_t type = g.type_in(1);
  g.dx(0, g.op("ScatterNd", {g.x(1), g.dy(), CastTo(g, g.shape(0), type)}, {{"bad_indices_policy", g.s("bad_indices_policy")}}));
}

void ScatterGradient(const tw::Grad& g) {
  g.dx(1, g.op("GatherNd", {g.dy(), g.x(0)}, {{"bad_indices_policy", g.s("bad_indices_policy")}}));
}

}  // namespace

void register_gather_nd(tw::Plugin& p) {
  p.op<GatherGradient, GatherRule>(
      "GatherNd(params: Tparams, indices: Tindices) -> (output: Tparams); Tparams: type; Tindices: " OPS_INDEX_SHORT
      "; bad_indices_policy: string = \"\"; "
      "?data params; doc \"params[indices[i]] for each index vector i; vectors shorter than the rank pick blocks\"");
  p.op<ScatterGradient, ScatterRule>(
      "ScatterNd(indices: Tindices, updates: T, shape: Tindices) -> (output: T); T: type; Tindices: " OPS_INDEX_SHORT
      "; bad_indices_policy: string = \"\"; role scatter_nd; "
      "?data updates; doc \"zeros of that shape with updates[i] added at indices[i]; equal indices add up\"");
}

}  // namespace thalweg::ops
