// NthElement returns the element of each row that would stand at place n if the row were sorted.
#include "ops/common/grad.h"
#include "ops/common/types.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

void Rule(const tw::Shape& s) {
  WantRankAtLeast(s, 0, 1, "input");
  const std::optional<int64_t> n = ScalarValue(s, 1, "n");
  if (n && *n < 0) Fail("'n' is " + tw::text(*n) + "; it must not be negative");
  const MaybeDims input = In(s, 0);
  if (!input) return s.unknown(0);
  if (n && Known(input->back()) && *n >= input->back())
    Fail("'n' is " + tw::text(*n) + ", but the rows of 'input' " + Text(input) + " have " + tw::text(input->back()) + " elements");
  s.out(0, Sub(*input, 0, input->size() - 1));
}

// Equal elements share the gradient.
void Gradient(const tw::Grad& g) {
  const tw_edge wanted = g.op("ExpandDims", {g.y(), Int(g, -1)}), dy = g.op("ExpandDims", {g.dy(), Int(g, -1)});
  const tw_edge equal = CastTo(g, g.op("Equal", {g.x(0), wanted}), g.type_in(0));
  const tw_edge count = g.op("Sum", {equal, Ints(g, {-1})}, {{"keep_dims", true}});
  g.dx(0, g.op("Mul", {g.op("RealDiv", {equal, count}), dy}));
}

}  // namespace

void register_nth_element(tw::Plugin& p) {
  p.op<Gradient, Rule>("NthElement(input: T, n: int32) -> (values: T); reverse: bool = false; T: " OPS_REALS
                       "; doc \"of each row along the last axis the element with n smaller ones, or larger ones\"");
}

}  // namespace thalweg::ops
