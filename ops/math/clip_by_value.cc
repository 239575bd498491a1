// ClipByValue limits elements to the range between two bounds. For complex numbers it limits both
// parts, each to the range of the bounds' parts.
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

struct Inputs {
  tw_edge t, low, high;
};

// Each element's gradient goes to the value that the element became: itself or a bound. The lower
// bound wins where the bounds cross. All results have the shape of t.
Inputs Shares(const tw::Grad& g, const Inputs& x, tw_edge dy) {
  const tw_edge zero = Number(g, 0, dy);
  const tw_edge is_high = g.op("Less", {x.high, x.t}), below = g.op("SelectV2", {is_high, x.high, x.t});
  const tw_edge is_low = g.op("Less", {below, x.low});
  const tw_edge not_low = g.op("SelectV2", {is_low, zero, dy});
  return {g.op("SelectV2", {is_high, zero, not_low}), g.op("SelectV2", {is_low, dy, zero}), g.op("SelectV2", {is_high, not_low, zero})};
}

Inputs PartShares(const tw::Grad& g, const char* part) {
  return Shares(g, {Part(g, part, g.x(0)), Part(g, part, g.x(1)), Part(g, part, g.x(2))}, Part(g, part, g.dy()));
}

void Gradient(const tw::Grad& g) {
  Inputs to;
  if (g.type_in(0) == TW_COMPLEX64 || g.type_in(0) == TW_COMPLEX128) {
    const Inputs re = PartShares(g, "Real"), im = PartShares(g, "Imag");
    to = {Complex(g, re.t, im.t), Complex(g, re.low, im.low), Complex(g, re.high, im.high)};
  } else {
    to = Shares(g, {g.x(0), g.x(1), g.x(2)}, g.dy());
  }
  g.dx(0, to.t);
  g.dx(1, SumTo(g, to.low, 1, ShapeIn(g, 0)));
  g.dx(2, SumTo(g, to.high, 2, ShapeIn(g, 0)));
}

}  // namespace

void register_clip_by_value(tw::Plugin& p) {
  p.op<Gradient, Rule>(
      "ClipByValue(t: T, clip_value_min: T, clip_value_max: T) -> (output: T); T: " OPS_NUMBERS
      "; ?elementwise; doc \"max(min(t, clip_value_max), clip_value_min); the bounds are scalars or of the shape of t; NaN stays; complex "
      "numbers part by part\"");
}

}  // namespace thalweg::ops
