// ResourceGather reads rows of a variable by index, without a copy of the other rows.
#include "ops/common/gather.h"
#include "ops/common/types.h"
#include "ops/common/variable.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

int64_t BatchDims(const tw::Attrs& a) {
  const int64_t batch = a.i("batch_dims");
  if (batch < 0) Fail("'batch_dims' is " + tw::text(batch) + "; it must not be negative");
  return batch;
}

void Rule(const tw::Shape& s) {
  const MaybeDims variable = Variable(s, 0, s.type("dtype"));
  const int64_t batch = BatchDims(s);
  if (variable && static_cast<int64_t>(variable->size()) <= batch)
    Fail("the variable is " + Text(variable) + ", which has no axis " + tw::text(batch) + " to gather from");
  Set(s, 0, GatheredShape(s, variable, In(s, 1), batch, batch));
}

// The gradient of the variable's value. It is sparse, except with batch axes: then it is dense and
// needs the variable's own shape.
void Gradient(const tw::Grad& g) {
  const int64_t batch = BatchDims(g);
  if (batch > 0) {
    const tw_edge value = g.op("ReadVariableOp", {g.x(0)}, {tw::Attr::Type("dtype", g.type("dtype"))});
    g.dx(0, ScatterBack(g, ShapeOf(g, value), Int(g, batch), batch));
    return;
  }
  SparseRows(g, [&] {
    const tw_edge first = g.op("Reshape", {g.op("Size", {g.shape(1)}), Ints(g, {1})});  // the axes of a row follow those of the indices
    return g.op("StridedSlice", {ShapeOf(g, g.dy()), first, Ints(g, {0}), Ints(g, {1})}, {{"end_mask", 1}});
  });
}

}  // namespace

void register_resource_gather(tw::Plugin& p) {
  p.op<Gradient, Rule>(
      "ResourceGather(resource: resource, indices: Tindices) -> (output: dtype); batch_dims: int = 0; "
      "validate_indices: bool = true; dtype: type; Tindices: " OPS_INDEX
      "; stateful; doc \"the variable's rows at the indices, which must be inside\"");
}

}  // namespace thalweg::ops
