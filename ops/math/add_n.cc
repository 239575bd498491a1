// AddN and AccumulateNV2 sum tensors of one shape. Autodiff sums gradients with AddN.
#include "ops/common/shape.h"
#include "ops/common/types.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

void Gradient(const tw::Grad& g) {
  for (uint32_t i = 0; i < g.inputs(); ++i) g.dx(i, g.dy());
}

// Attribute `shape` is the shape of all inputs, as far as known.
void ShapedRule(const tw::Shape& s) {
  MaybeDims out = ToDims(s.shape("shape"));
  for (uint32_t i = 0; i < s.c->n_in; ++i)
    out = Merge(s, out, In(s, i), "the inputs must have one shape; attribute 'shape' and input " + tw::text(i));
  Set(s, 0, out);
}

}  // namespace

void register_add_n(tw::Plugin& p) {
  p.op<Gradient, SameShapesRule>(
      "AddN(inputs: T * N) -> (sum: T); N: int >= 1; "
      "T: {half, bfloat16, float, double, int8, int16, int32, int64, uint8, uint16, uint32, uint64, complex64, complex128, qint8, qint16, "
      "qint32, quint8, quint16, variant}; commutative; ?elementwise; role add_n; ?data inputs; doc \"sum of tensors of one shape\"");
  p.op<Gradient, ShapedRule>("AccumulateNV2(inputs: T * N) -> (sum: T); N: int >= 1; T: " OPS_NUMBERS
                             "; shape: shape; commutative; doc \"AddN of tensors whose shape, or what is known of it, is an attribute\"");
}

}  // namespace thalweg::ops
