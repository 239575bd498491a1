// Lgamma, its derivatives Digamma and Polygamma, and Zeta, the sum from which these follow; Erfinv
// and Ndtri.
#include <cmath>
#include <numbers>

#include "ops/common/grad.h"
#include "ops/common/types.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

tw_edge Mul(const tw::Grad& g, tw_edge a, tw_edge b) { return g.op("Mul", {a, b}); }

void LgammaGradient(const tw::Grad& g) { g.dx(0, Mul(g, g.dy(), g.op("Digamma", {g.x(0)}))); }

// Polygamma does not support 16-bit types.
void DigammaGradient(const tw::Grad& g) {
  const uint32_t type = g.type_in(0);
  const tw_edge x = CastTo(g, g.x(0), type == TW_DOUBLE ? TW_DOUBLE : TW_FLOAT);
  g.dx(0, Mul(g, g.dy(), CastTo(g, g.op("Polygamma", {Number(g, 1, x), x}), type)));
}

// The order is an integer, so it has no derivative.
void PolygammaGradient(const tw::Grad& g) {
  const tw_edge a = g.x(0), next = g.op("AddV2", {a, Number(g, 1, a)});
  g.dx(1, SumTo(g, Mul(g, g.dy(), g.op("Polygamma", {next, g.x(1)})), 1, ShapeIn(g, 0)));
}

// As in TensorFlow, only q gets a gradient.
void ZetaGradient(const tw::Grad& g) {
  const tw_edge x = g.x(0), next = g.op("Zeta", {g.op("AddV2", {x, Number(g, 1, x)}), g.x(1)});
  g.dx(1, SumTo(g, g.op("Neg", {Mul(g, g.dy(), Mul(g, x, next))}), 1, ShapeIn(g, 0)));
}

// The slope of an inverse function from its result y: scale * exp(power * y^2).
void Inverse(const tw::Grad& g, double scale, double power) {
  const tw_edge y = g.y();
  const tw_edge bell = g.op("Exp", {Mul(g, Number(g, power, y), g.op("Square", {y}))});
  g.dx(0, Mul(g, g.dy(), Mul(g, Number(g, scale, y), bell)));
}
void ErfinvGradient(const tw::Grad& g) { Inverse(g, 1 / (2 * std::numbers::inv_sqrtpi), 1); }
void NdtriGradient(const tw::Grad& g) { Inverse(g, std::numbers::sqrt2 / std::numbers::inv_sqrtpi, 0.5); }

template <void (*Gradient)(const tw::Grad&)>
void Unary(tw::Plugin& p, const std::string& name, const std::string& doc) {
  p.op<Gradient>(name + "(x: T[*s]) -> (y: T[*s]); T: " OPS_FLOATS "; doc \"" + doc + "\"");
}

}  // namespace

void register_gamma(tw::Plugin& p) {
  Unary<LgammaGradient>(p, "Lgamma", "log(|gamma(x)|); infinite at 0, -1, -2, ...");
  Unary<DigammaGradient>(p, "Digamma", "derivative of Lgamma; NaN at 0, -1, -2, ...");
  p.op<PolygammaGradient, BinaryRule>(
      "Polygamma(a: T, x: T) -> (z: T); T: {float, double}; "
      "doc \"derivative number a of Digamma at x; NaN unless a is 0, 1, 2, ...; no gradient flows to a\"");
  p.op<ZetaGradient, BinaryRule>(
      "Zeta(x: T, q: T) -> (z: T); T: {float, double}; "
      "doc \"sum over k >= 0 of (q + k)^-x, NaN for x < 1; no gradient flows to x\"");
  Unary<ErfinvGradient>(p, "Erfinv", "the number whose Erf is x; infinite at -1 and 1, NaN beyond");
  Unary<NdtriGradient>(p, "Ndtri", "the number below which a standard normal variable is with probability x; NaN outside [0, 1]");
}

}  // namespace thalweg::ops
