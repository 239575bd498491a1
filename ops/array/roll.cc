// Roll shifts elements along axes; those shifted out at one end come in at the other.
#include "ops/common/grad.h"
#include "ops/common/types.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

void Rule(const tw::Shape& s) {
  WantRankAtLeast(s, 0, 1, "input");
  for (const auto& [i, name] : {std::pair{1u, "shift"}, {2u, "axis"}})
    if (s.known(i) && s.rank(i) > 1) Fail("'" + std::string(name) + "' is " + tw::text(s.in(i)) + "; it must be a scalar or a vector");
  Merge(s, In(s, 1), In(s, 2), "the shapes of 'shift' and 'axis'");
  Dims axes;
  if (s.known(0) && s.value(2, &axes))
    for (int64_t axis : axes) Axis(axis, s.rank(0), "axis");
  Set(s, 0, In(s, 0));
}

void Gradient(const tw::Grad& g) { g.dx(0, g.op("Roll", {g.dy(), g.op("Neg", {g.x(1)}), g.x(2)})); }

}  // namespace

void register_roll(tw::Plugin& p) {
  p.op<Gradient, Rule>("Roll(input: T, shift: Tshift, axis: Taxis) -> (output: T); T: type; Tshift: " OPS_INDEX "; Taxis: " OPS_INDEX
                       "; ?data input; doc \"elements moved by shift[k] along axis[k]; what leaves at one end comes in at the other\"");
}

}  // namespace thalweg::ops
