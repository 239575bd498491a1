// LinSpace makes numbers at equal distances.
#include "ops/common/grad.h"
#include "ops/common/types.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

void Rule(const tw::Shape& s) {
  WantScalar(s, 0, "start");
  WantScalar(s, 1, "stop");
  const std::optional<int64_t> num = ScalarValue(s, 2, "num");
  if (num && *num < 1) Fail("'num' is " + tw::text(*num) + "; there must be at least one number");
  s.out(0, Dims{num ? *num : -1});
}

// Each number is start * (1 - w) + stop * w, for w from 0 to 1.
void Gradient(const tw::Grad& g) {
  const tw_edge zero = Number(g, 0, g.dy()), one = Number(g, 1, g.dy()), axis = Int(g, 0);
  const tw_edge w = g.op("LinSpace", {zero, one, g.x(2)});
  g.dx(0, g.op("Sum", {g.op("Mul", {g.dy(), g.op("Sub", {one, w})}), axis}));
  g.dx(1, g.op("Sum", {g.op("Mul", {g.dy(), w}), axis}));
}

}  // namespace

void register_lin_space(tw::Plugin& p) {
  p.op<Gradient, Rule>("LinSpace(start: T, stop: T, num: Tidx) -> (output: T); T: {bfloat16, half, float, double}; Tidx: " OPS_INDEX
                       " = int32; doc \"num numbers at equal distances, the first one start and the last one stop\"");
}

}  // namespace thalweg::ops
