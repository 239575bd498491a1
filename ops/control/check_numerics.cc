// CheckNumerics fails the step if an element is NaN or infinite.
#include "ops/common/grad.h"
#include "ops/common/types.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

// The gradient is checked, too.
void Gradient(const tw::Grad& g) {
  const std::string message = "in the gradient of: " + std::string(g.s("message"));
  g.dx(0, g.op("CheckNumerics", {g.dy()}, {{"message", message}}));
}

}  // namespace

void register_check_numerics(tw::Plugin& p) {
  p.op<Gradient>("CheckNumerics(tensor: T[*s]) -> (output: T[*s]); T: " OPS_FLOATS
                 "; message: string; stateful; doc \"its input; an error that begins with `message` where an element is NaN or infinite\"");
}

}  // namespace thalweg::ops
