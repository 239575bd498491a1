// ClipByValue: elements between two bounds.
#include "ops/common/grad.h"
#include "ops/common/types.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

void Rule(const tw::Shape& s) {
  MaybeDims out = In(s, 0);
  for (uint32_t i = 1; i < 3; ++i) {
    const MaybeDims bound = In(s, i);
    if (bound && !bound->empty())
      out = Merge(s, out, bound,
                  std::string("a bound must be a scalar or have the shape of 't'; 't' and 'clip_value_") + (i == 1 ? "min'" : "max'"));
  }
  Set(s, 0, out);
}

// Each element's gradient goes to what it became: itself, or a bound. The lower one wins where the bounds cross.
void Gradient(const tw::Grad& g) {
  const tw_edge t = g.x(0), low = g.x(1), high = g.x(2), dy = g.dy(), zero = Number(g, 0, dy);
  const tw_edge is_high = g.op("Less", {high, t}), below = g.op("SelectV2", {is_high, high, t});
  const tw_edge is_low = g.op("Less", {below, low});
  const tw_edge not_low = g.op("SelectV2", {is_low, zero, dy});
  g.dx(0, g.op("SelectV2", {is_high, zero, not_low}));
  g.dx(1, SumTo(g, g.op("SelectV2", {is_low, dy, zero}), 1, ShapeIn(g, 0)));
  g.dx(2, SumTo(g, g.op("SelectV2", {is_high, not_low, zero}), 2, ShapeIn(g, 0)));
}

}  // namespace

void register_clip_by_value(tw::Plugin& p) {
  p.op<Gradient, Rule>("ClipByValue(t: T, clip_value_min: T, clip_value_max: T) -> (output: T); T: " OPS_NUMBERS
                       "; doc \"max(min(t, clip_value_max), clip_value_min); the bounds are scalars or of the shape of t; NaN stays\"");
}

}  // namespace thalweg::ops
