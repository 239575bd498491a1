// L2Loss computes half the sum of the squares of all elements.
#include "ops/common/types.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

void Gradient(const tw::Grad& g) { g.dx(0, g.op("Mul", {g.x(0), g.dy()})); }

}  // namespace

void register_l2_loss(tw::Plugin& p) {
  p.op<Gradient>("L2Loss(t: T) -> (output: T[]); T: " OPS_FLOATS "; ?data t; doc \"sum(t * t) / 2\"");
}

}  // namespace thalweg::ops
