// ResourceGatherNd reads elements or blocks of a variable by index vectors, without a copy of the
// rest.
#include "ops/common/gather.h"
#include "ops/common/types.h"
#include "ops/common/variable.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

void Rule(const tw::Shape& s) {
  const MaybeDims variable = Variable(s, 0, s.type("dtype")), indices = In(s, 1);
  WantRankAtLeast(s, 1, 1, "indices");
  if (!indices) return;
  const int64_t length = IndexLength(indices, variable, "the variable");
  if (!variable || !Known(length)) return;
  s.out(0, Join(Sub(*indices, 0, indices->size() - 1), Sub(*variable, static_cast<size_t>(length), variable->size())));
}

// The gradient of the variable's value: sparse if the op picks whole rows, else dense.
void Gradient(const tw::Grad& g) {
  const MaybeDims indices = ShapeIn(g, 1);
  if (indices && indices->back() == 1) {
    tw_edge values = g.dy();
    if (indices->size() != 2) {
      const tw_edge count = g.op("Reshape", {g.op("Size", {g.x(1)}), Ints(g, {1})});
      const tw_edge row = Tail(g, ShapeOf(g, values), static_cast<int64_t>(indices->size()) - 1);
      values = g.op("Reshape", {values, Concat(g, {count, row})});
    }
    g.dx_sparse(0, g.op("Reshape", {g.x(1), Ints(g, {-1})}), values);
    return;
  }
  const tw_edge value = g.op("ReadVariableOp", {g.x(0)}, {tw::Attr::Type("dtype", g.type("dtype"))});
  g.dx(0, g.op("ScatterNd", {g.x(1), g.dy(), CastTo(g, ShapeOf(g, value), g.type_in(1))}));
}

}  // namespace

void register_resource_gather_nd(tw::Plugin& p) {
  p.op<Gradient, Rule>("ResourceGatherNd(resource: resource, indices: Tindices) -> (output: dtype); dtype: type; Tindices: " OPS_INDEX
                       "; stateful; doc \"variable[indices[i]] for each index vector i; vectors shorter than its rank pick blocks\"");
}

}  // namespace thalweg::ops
