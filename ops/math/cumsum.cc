// Cumsum: running sums along an axis.
#include "ops/common/shape.h"
#include "ops/common/types.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

void Rule(const tw::Shape& s) {
  const std::optional<int64_t> axis = ScalarValue(s, 1, "axis");
  WantRankAtLeast(s, 0, 1, "x");
  if (axis && s.known(0)) Axis(*axis, s.rank(0), "axis");
  Set(s, 0, In(s, 0));
}

// Each element is in the sums that come after it: sum the gradients the other way.
void Gradient(const tw::Grad& g) {
  g.dx(0, g.op("Cumsum", {g.dy(), g.x(1)}, {{"exclusive", g.b("exclusive")}, {"reverse", !g.b("reverse")}}));
}

}  // namespace

void register_cumsum(tw::Plugin& p) {
  p.op<Gradient, Rule>("Cumsum(x: T, axis: Tidx) -> (out: T); exclusive: bool = false; reverse: bool = false; T: " OPS_NUMBERS
                       "; Tidx: " OPS_INDEX
                       " = int32; doc \"running sum along an axis; exclusive leaves the element itself out, reverse starts at the end\"");
}

}  // namespace thalweg::ops
