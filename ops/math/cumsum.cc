// Cumsum and Cumprod compute running sums and products along an axis.
#include "ops/common/grad.h"
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

// Each element is a term of the sums after it, so its gradient is the sum of theirs in the other
// direction.
tw_edge SumBack(const tw::Grad& g, tw_edge e) {
  return g.op("Cumsum", {e, g.x(1)}, {{"exclusive", g.b("exclusive")}, {"reverse", !g.b("reverse")}});
}
void SumGradient(const tw::Grad& g) { g.dx(0, SumBack(g, g.dy())); }

// Returns the gradient through running products from which the elements marked by `without` are
// left out.
tw_edge ProductsBack(const tw::Grad& g, tw_edge without) {
  const tw_edge kept = g.op("SelectV2", {without, Number(g, 1, g.x(0)), g.x(0)});
  const tw_edge products = g.op("Cumprod", {kept, g.x(1)}, {{"exclusive", g.b("exclusive")}, {"reverse", g.b("reverse")}});
  return SumBack(g, g.op("Mul", {g.dy(), Conj(g, products)}));
}

// The slope is y / x for each product that contains x. After the first 0 of a run all products are
// 0, so only this 0 has a different slope: the products without it. The slope of the second 0 is 0,
// but it has a derivative. So it is written as the product without both zeros, times the first.
void ProdGradient(const tw::Grad& g) {
  const tw_edge x = g.x(0), zero = Number(g, 0, x), one = Number(g, 1, x);
  const tw_edge is_zero = g.op("Equal", {x, zero});
  const auto sums = [&](tw_edge e) { return g.op("Cumsum", {e, g.x(1)}, {{"reverse", g.b("reverse")}}); };
  const tw_edge zeros = sums(CastTo(g, is_zero, TW_INT64));
  const auto zero_number = [&](double n) { return g.op("LogicalAnd", {is_zero, g.op("Equal", {zeros, g.scalar(n, TW_INT64)})}); };
  const tw_edge first = zero_number(1), second = zero_number(2);
  const tw_edge at_first = ProductsBack(g, first);
  const tw_edge before = Conj(g, sums(g.op("SelectV2", {first, x, zero})));
  const tw_edge at_second = g.op("Mul", {before, ProductsBack(g, g.op("LogicalOr", {first, second}))});
  const tw_edge filled = Conj(g, g.op("SelectV2", {is_zero, one, x}));
  const tw_edge others = g.op("RealDiv", {SumBack(g, g.op("Mul", {g.dy(), Conj(g, g.y())})), filled});
  const tw_edge at_zero = g.op("SelectV2", {second, at_second, zero});
  g.dx(0, g.op("SelectV2", {first, at_first, g.op("SelectV2", {is_zero, at_zero, others})}));
}

}  // namespace

void register_cumsum(tw::Plugin& p) {
  const std::string clauses = "(x: T, axis: Tidx) -> (out: T); exclusive: bool = false; reverse: bool = false; T: " OPS_NUMBERS
                              "; Tidx: " OPS_INDEX " = int32; ?data x; ";
  p.op<SumGradient, Rule>("Cumsum" + clauses +
                          "doc \"running sum along an axis; exclusive leaves the element itself out, reverse starts at the end\"");
  p.op<ProdGradient, Rule>("Cumprod" + clauses +
                           "doc \"running product along an axis; exclusive leaves the element itself out, reverse starts at the end\"");
}

}  // namespace thalweg::ops
