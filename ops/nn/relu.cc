// Relu, Relu6 and their backward ops.
#include "ops/common/types.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

// Uses the result, which is 0 or 6 exactly where the input was outside, so that the input need not
// be kept.
void ReluGradient(const tw::Grad& g) { g.dx(0, g.op("ReluGrad", {g.dy(), g.y()})); }
void Relu6Gradient(const tw::Grad& g) { g.dx(0, g.op("Relu6Grad", {g.dy(), g.y()})); }
// The mask of the gradient does not depend on the features, so they get no gradient.
void ReluGradGradient(const tw::Grad& g) { g.dx(0, g.op("ReluGrad", {g.dy(), g.x(1)})); }
void Relu6GradGradient(const tw::Grad& g) { g.dx(0, g.op("Relu6Grad", {g.dy(), g.x(1)})); }

}  // namespace

void register_relu(tw::Plugin& p) {
  p.op<ReluGradient>(
      "Relu(features: T[*s]) -> (activations: T[*s]); "
      "T: {half, bfloat16, float, double, int8, int16, int32, int64, uint8, uint16, uint32, uint64, qint8}; idempotent; ?elementwise; doc "
      "\"max(features, 0); NaN "
      "stays NaN\"");
  p.op<ReluGradGradient>("ReluGrad(gradients: T[*s], features: T[*s]) -> (backprops: T[*s]); T: " OPS_REALS
                         "; ?elementwise; doc \"gradients where features > 0, else 0; features may be Relu's input or result\"");
  p.op<Relu6Gradient>("Relu6(features: T[*s]) -> (activations: T[*s]); T: " OPS_REALS
                      "; idempotent; ?elementwise; doc \"min(max(features, 0), 6); NaN stays NaN\"");
  p.op<Relu6GradGradient>("Relu6Grad(gradients: T[*s], features: T[*s]) -> (backprops: T[*s]); T: " OPS_REALS
                          "; ?elementwise; doc \"gradients where 0 < features < 6, else 0; features may be Relu6's input or result\"");
}

}  // namespace thalweg::ops
