// AddN: the sum of many tensors of one shape; autodiff adds gradients with it.
#include "ops/common/shape.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

void Gradient(const tw::Grad& g) {
  for (uint32_t i = 0; i < g.inputs(); ++i) g.dx(i, g.dy());
}

}  // namespace

void register_add_n(tw::Plugin& p) {
  p.op<Gradient, SameShapesRule>(
      "AddN(inputs: T * N) -> (sum: T); N: int >= 1; "
      "T: {half, bfloat16, float, double, int8, int16, int32, int64, uint8, uint16, uint32, uint64, complex64, complex128, qint8, qint16, "
      "qint32, quint8, quint16, variant}; commutative; role add_n; doc \"sum of tensors of one shape\"");
}

}  // namespace thalweg::ops
