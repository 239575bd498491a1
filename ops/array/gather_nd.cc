// GatherNd picks elements or blocks by index vectors; ScatterNd adds blocks into zeros by index vectors. Each is the gradient of the other.
#include "ops/common/grad.h"
#include "ops/common/types.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

// What to do about an index that is outside: "" and "DEFAULT" are the device's own way, which here is an error.
void CheckPolicy(const tw::Attrs& a) {
  const std::string_view policy = a.s("bad_indices_policy");
  if (policy != "" && policy != "DEFAULT" && policy != "ERROR" && policy != "IGNORE")
    Fail("'bad_indices_policy' is \"" + std::string(policy) + "\"; it must be empty, \"DEFAULT\", \"ERROR\" or \"IGNORE\"");
}

// The length of an index vector, checked against the axes that it walks through; -1: unknown.
int64_t IndexLength(const MaybeDims& indices, const MaybeDims& params, const char* name) {
  const int64_t length = indices->back();
  if (params && Known(length) && length > static_cast<int64_t>(params->size()))
    Fail("'indices' is " + Text(indices) + ", index vectors of " + tw::text(length) + " entries, but '" + std::string(name) + "' is " +
         Text(params) + ", which has fewer axes");
  return length;
}

void GatherRule(const tw::Shape& s) {
  CheckPolicy(s);
  WantRankAtLeast(s, 1, 1, "indices");
  const MaybeDims params = In(s, 0), indices = In(s, 1);
  if (!indices) return;
  const int64_t length = IndexLength(indices, params, "params");
  if (!params || !Known(length)) return;
  s.out(0, Join(Sub(*indices, 0, indices->size() - 1), Sub(*params, static_cast<size_t>(length), params->size())));
}

void ScatterRule(const tw::Shape& s) {
  CheckPolicy(s);
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
      "doc \"params[indices[i]] for each index vector i; vectors shorter than the rank pick blocks\"");
  p.op<ScatterGradient, ScatterRule>(
      "ScatterNd(indices: Tindices, updates: T, shape: Tindices) -> (output: T); T: type; Tindices: " OPS_INDEX_SHORT
      "; bad_indices_policy: string = \"\"; role scatter_nd; "
      "doc \"zeros of that shape with updates[i] added at indices[i]; equal indices add up\"");
}

}  // namespace thalweg::ops
