// OneHot adds an axis on which one element has on_value and the others have off_value.
#include "ops/common/grad.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

void Rule(const tw::Shape& s) {
  const std::optional<int64_t> depth = ScalarValue(s, 1, "depth");
  WantScalar(s, 2, "on_value");
  WantScalar(s, 3, "off_value");
  if (depth && *depth < 0) Fail("'depth' is " + tw::text(*depth) + "; it must not be negative");
  const int64_t axis = s.i("axis");
  if (axis < -1) Fail("'axis' is " + tw::text(axis) + "; it must be -1 (a new last axis) or not negative");
  if (!s.known(0)) return;
  Dims out = *In(s, 0);
  if (axis > s.rank(0))
    Fail("'axis' is " + tw::text(axis) + " but the indices are " + tw::text(s.in(0)) + "; it may be " + tw::text(s.rank(0)) + " at most");
  out.insert(axis == -1 ? out.end() : out.begin() + axis, depth.value_or(-1));
  s.out(0, out);
}

// Each of the two values gets the sum of the gradient over its places.
void Gradient(const tw::Grad& g) {
  const tw_edge dy = g.dy(), zero = Number(g, 0, dy), one = Number(g, 1, dy);
  const tw_edge axes = g.op("Range", {Int(g, 0), g.op("Rank", {dy}), Int(g, 1)});
  auto where = [&](tw_edge on, tw_edge off) {
    const tw_edge mask = g.op("OneHot", {g.x(0), g.x(1), on, off}, {{"axis", g.i("axis")}});
    return g.op("Sum", {g.op("Mul", {dy, mask}), axes});
  };
  g.dx(2, where(one, zero));
  g.dx(3, where(zero, one));
}

}  // namespace

void register_one_hot(tw::Plugin& p) {
  p.op<Gradient, Rule>(R"(
      OneHot(indices: TI, depth: int32, on_value: T, off_value: T) -> (output: T); axis: int = -1; T: type;
      TI: {uint8, int8, int32, int64} = int64;
      ?data on_value off_value;
      doc "on_value at each index along a new axis of size depth, off_value elsewhere; an index outside is on nowhere")");
}

}  // namespace thalweg::ops
