// Quotients rounded towards 0 and their remainders; two arguments broadcast as in NumPy.
#include "ops/common/grad.h"
#include "ops/common/types.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

// z = x - trunc(x / y) y; the rounded quotient counts as constant.
void ModGradient(const tw::Grad& g) {
  const tw_edge quotient = g.op("TruncateDiv", {g.x(0), g.x(1)});
  BroadcastGradient(g, g.dy(), g.op("Neg", {g.op("Mul", {g.dy(), quotient})}));
}

template <void (*Gradient)(const tw::Grad&)>
void Binary(tw::Plugin& p, const std::string& name, const std::string& types, const std::string& doc) {
  p.op<Gradient, BinaryRule>(name + "(x: T, y: T) -> (z: T); T: " + types + "; doc \"" + doc + "\"");
}

}  // namespace

void register_truncate(tw::Plugin& p) {
  const std::string types = "{int32, int64, half, bfloat16, float, double}";
  Binary<ZeroGradient>(p, "TruncateDiv", OPS_ARITHMETIC, "x / y rounded towards 0");
  Binary<ModGradient>(p, "TruncateMod", types, "what TruncateDiv leaves: x - trunc(x / y) y, with the sign of x");
  Binary<ModGradient>(p, "Mod", types, "TruncateMod by its older name");
}

}  // namespace thalweg::ops
