// Element-wise math of one argument. Gradients of complex arguments use conjugates, as in
// TensorFlow.
#include <numbers>

#include "ops/common/grad.h"
#include "ops/common/types.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

tw_edge X(const tw::Grad& g) { return Conj(g, g.x(0)); }
tw_edge Y(const tw::Grad& g) { return Conj(g, g.y()); }
tw_edge Mul(const tw::Grad& g, tw_edge a, tw_edge b) { return g.op("Mul", {a, b}); }

void AbsGradient(const tw::Grad& g) { g.dx(0, Mul(g, g.dy(), g.op("Sign", {g.x(0)}))); }
void NegGradient(const tw::Grad& g) { g.dx(0, g.op("Neg", {g.dy()})); }
void ConjGradient(const tw::Grad& g) { g.dx(0, g.op("Conj", {g.dy()})); }
void SquareGradient(const tw::Grad& g) {
  const tw_edge x = X(g);
  g.dx(0, Mul(g, g.dy(), Mul(g, Number(g, 2, x), x)));
}
void SqrtGradient(const tw::Grad& g) { g.dx(0, g.op("SqrtGrad", {g.y(), g.dy()})); }
void RsqrtGradient(const tw::Grad& g) { g.dx(0, g.op("RsqrtGrad", {g.y(), g.dy()})); }
void ReciprocalGradient(const tw::Grad& g) { g.dx(0, g.op("ReciprocalGrad", {g.y(), g.dy()})); }
void ExpGradient(const tw::Grad& g) { g.dx(0, Mul(g, g.dy(), Y(g))); }
// Uses exp(x), not y + 1, which loses precision for very negative x.
void Expm1Gradient(const tw::Grad& g) { g.dx(0, Mul(g, g.dy(), g.op("Exp", {X(g)}))); }
void LogGradient(const tw::Grad& g) { g.dx(0, g.op("RealDiv", {g.dy(), X(g)})); }
void Log1pGradient(const tw::Grad& g) {
  const tw_edge x = X(g);
  g.dx(0, g.op("RealDiv", {g.dy(), g.op("AddV2", {Number(g, 1, x), x})}));
}
void SinGradient(const tw::Grad& g) { g.dx(0, Mul(g, g.dy(), g.op("Cos", {X(g)}))); }
void CosGradient(const tw::Grad& g) { g.dx(0, g.op("Neg", {Mul(g, g.dy(), g.op("Sin", {X(g)}))})); }
void TanhGradient(const tw::Grad& g) { g.dx(0, g.op("TanhGrad", {Y(g), g.dy()})); }
void SigmoidGradient(const tw::Grad& g) { g.dx(0, g.op("SigmoidGrad", {Y(g), g.dy()})); }
void Bell(const tw::Grad& g, double scale) {
  const tw_edge x = g.x(0);
  const tw_edge bell = g.op("Exp", {g.op("Neg", {g.op("Square", {x})})});
  g.dx(0, Mul(g, g.dy(), Mul(g, Number(g, scale, x), bell)));
}
void ErfGradient(const tw::Grad& g) { Bell(g, 2 * std::numbers::inv_sqrtpi); }
void ErfcGradient(const tw::Grad& g) { Bell(g, -2 * std::numbers::inv_sqrtpi); }

// The backward ops below take the result y of the forward op and the incoming gradient dy. As in
// TensorFlow, the first three conjugate a complex y themselves; the last two expect it conjugated.
tw_edge Scaled(const tw::Grad& g, double v, tw_edge a, tw_edge b) { return Mul(g, Number(g, v, a), Mul(g, a, b)); }

// z = dy / (2 conj(y))
void SqrtGradGradient(const tw::Grad& g) {
  const tw_edge ratio = g.op("RealDiv", {g.dy(), g.x(0)});
  g.dx(0, g.op("Neg", {Mul(g, Conj(g, ratio), g.y())}));
  g.dx(1, g.op("SqrtGrad", {Conj(g, g.x(0)), g.dy()}));
}
// z = -dy conj(y)^3 / 2
void RsqrtGradGradient(const tw::Grad& g) {
  const tw_edge y = Conj(g, g.x(0));
  g.dx(0, Scaled(g, -1.5, Conj(g, g.dy()), Mul(g, g.x(1), g.op("Square", {y}))));
  g.dx(1, g.op("RsqrtGrad", {y, g.dy()}));
}
// z = -dy conj(y)^2
void ReciprocalGradGradient(const tw::Grad& g) {
  const tw_edge y = Conj(g, g.x(0));
  g.dx(0, Scaled(g, -2, Conj(g, g.dy()), Mul(g, g.x(1), y)));
  g.dx(1, g.op("ReciprocalGrad", {y, g.dy()}));
}
// z = dy (1 - y^2)
void TanhGradGradient(const tw::Grad& g) {
  const tw_edge y = Conj(g, g.x(0)), dy = Conj(g, g.x(1));
  g.dx(0, Scaled(g, -2, g.dy(), Mul(g, dy, y)));
  g.dx(1, g.op("TanhGrad", {y, g.dy()}));
}
// z = dy y (1 - y)
void SigmoidGradGradient(const tw::Grad& g) {
  const tw_edge y = Conj(g, g.x(0)), dy = Conj(g, g.x(1));
  const tw_edge slope = g.op("Sub", {Number(g, 1, y), Mul(g, Number(g, 2, y), y)});
  g.dx(0, Mul(g, g.dy(), Mul(g, dy, slope)));
  g.dx(1, g.op("SigmoidGrad", {y, g.dy()}));
}

template <void (*Gradient)(const tw::Grad&)>
void Unary(tw::Plugin& p, const std::string& name, const std::string& types, const std::string& doc, const std::string& clauses = "") {
  p.op<Gradient>(name + "(x: T[*s]) -> (y: T[*s]); T: " + types + clauses + "; ?elementwise; doc \"" + doc + "\"");
}

void Test(tw::Plugin& p, const std::string& name, const std::string& doc) {
  p.op(name + "(x: T[*s]) -> (y: bool[*s]); T: " OPS_FLOATS "; ?elementwise; no_gradient \"truth values have no derivative\"; doc \"" +
       doc + "\"");
}

template <void (*Gradient)(const tw::Grad&)>
void Backward(tw::Plugin& p, const std::string& name, const std::string& doc) {
  p.op<Gradient>(name + "(y: T[*s], dy: T[*s]) -> (z: T[*s]); T: " OPS_FLOATS_COMPLEX "; ?elementwise; doc \"" + doc + "\"");
}

}  // namespace

void register_unary(tw::Plugin& p) {
  Unary<AbsGradient>(p, "Abs", OPS_SIGNED, "absolute value", "; idempotent");
  Unary<NegGradient>(p, "Neg", OPS_SIGNED_COMPLEX, "-x", "; involution");
  Unary<SquareGradient>(p, "Square", OPS_ARITHMETIC, "x * x");
  Unary<SqrtGradient>(p, "Sqrt", OPS_FLOATS_COMPLEX, "square root; NaN below 0");
  Unary<RsqrtGradient>(p, "Rsqrt", OPS_FLOATS_COMPLEX, "1 / sqrt(x)");
  Unary<ReciprocalGradient>(p, "Reciprocal", OPS_SIGNED_COMPLEX, "1 / x");
  Unary<ReciprocalGradient>(p, "Inv", OPS_SIGNED_COMPLEX, "1 / x, by its older name");
  Unary<ExpGradient>(p, "Exp", OPS_FLOATS_COMPLEX, "e to the power of x");
  Unary<Expm1Gradient>(p, "Expm1", OPS_FLOATS_COMPLEX, "exp(x) - 1, exact near 0");
  Unary<LogGradient>(p, "Log", OPS_FLOATS_COMPLEX, "natural logarithm; NaN below 0, -infinity at 0");
  Unary<Log1pGradient>(p, "Log1p", OPS_FLOATS_COMPLEX, "log(1 + x), exact near 0");
  Unary<SinGradient>(p, "Sin", OPS_FLOATS_COMPLEX, "sine of radians");
  Unary<CosGradient>(p, "Cos", OPS_FLOATS_COMPLEX, "cosine of radians");
  Unary<TanhGradient>(p, "Tanh", OPS_FLOATS_COMPLEX, "hyperbolic tangent");
  Unary<SigmoidGradient>(p, "Sigmoid", OPS_FLOATS_COMPLEX, "1 / (1 + exp(-x))");
  Unary<ErfGradient>(p, "Erf", OPS_FLOATS, "error function");
  Unary<ErfcGradient>(p, "Erfc", OPS_FLOATS, "1 - erf(x), exact for large x");
  Unary<ZeroGradient>(p, "Sign", OPS_SIGNED_COMPLEX, "-1, 0 or 1; x / |x| of a complex number; NaN stays NaN", "; idempotent");
  Unary<ZeroGradient>(p, "Floor", OPS_FLOATS, "the largest whole number that is not above x", "; idempotent");
  Unary<ZeroGradient>(p, "Ceil", OPS_FLOATS, "the smallest whole number that is not below x", "; idempotent");
  Unary<ZeroGradient>(p, "Round", OPS_SIGNED_COMPLEX, "the nearest whole number, halves to the even one", "; idempotent");
  Unary<ZeroGradient>(p, "Rint", OPS_FLOATS, "the nearest whole number, halves to the even one", "; idempotent");
  Test(p, "IsNan", "whether x is not a number");
  Test(p, "IsInf", "whether x is infinite");
  Test(p, "IsFinite", "whether x is neither infinite nor NaN");
  p.op(
      "LogicalNot(x: bool[*s]) -> (y: bool[*s]); involution; ?elementwise; no_gradient \"truth values have no derivative\"; ?data x; doc "
      "\"not x\"");
  p.op<ConjGradient>(
      "Conj(input: T[*s]) -> (output: T[*s]); T: {complex64, complex128, variant} = complex64; involution; ?elementwise; doc \"complex "
      "conjugate\"");
  Backward<SqrtGradGradient>(p, "SqrtGrad", "gradient of Sqrt from its result y: dy / (2 conj(y))");
  Backward<RsqrtGradGradient>(p, "RsqrtGrad", "gradient of Rsqrt from its result y: -dy conj(y)^3 / 2");
  Backward<ReciprocalGradGradient>(p, "ReciprocalGrad", "gradient of Reciprocal from its result y: -dy conj(y)^2");
  Backward<ReciprocalGradGradient>(p, "InvGrad", "gradient of Inv from its result y: -dy conj(y)^2");
  Backward<TanhGradGradient>(p, "TanhGrad", "gradient of Tanh from its result y: dy (1 - y^2)");
  Backward<SigmoidGradGradient>(p, "SigmoidGrad", "gradient of Sigmoid from its result y: dy y (1 - y)");
}

}  // namespace thalweg::ops
