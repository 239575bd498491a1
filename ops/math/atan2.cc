// Atan2 computes the angle of a point; the arguments broadcast as in NumPy.
#include "ops/common/grad.h"
#include "ops/common/types.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

void Gradient(const tw::Grad& g) {
  const tw_edge y = g.x(0), x = g.x(1), square = g.op("AddV2", {g.op("Square", {x}), g.op("Square", {y})});
  const tw_edge ratio = g.op("RealDiv", {g.dy(), square});
  BroadcastGradient(g, g.op("Mul", {ratio, x}), g.op("Neg", {g.op("Mul", {ratio, y})}));
}

}  // namespace

void register_atan2(tw::Plugin& p) {
  p.op<Gradient, BinaryRule>("Atan2(y: T, x: T) -> (z: T); T: " OPS_FLOATS
                             "; doc \"the angle in [-pi, pi] of the point (x, y) with the positive axis\"");
}

}  // namespace thalweg::ops
