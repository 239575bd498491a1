// Tan, the inverse trigonometric functions, the hyperbolic ones and their inverses. Complex results
// are principal values with the branch cuts of C; gradients use conjugates, as in TensorFlow.
#include "ops/common/grad.h"
#include "ops/common/types.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

tw_edge X(const tw::Grad& g) { return Conj(g, g.x(0)); }
tw_edge Y(const tw::Grad& g) { return Conj(g, g.y()); }
tw_edge Plus1(const tw::Grad& g, tw_edge a) { return g.op("AddV2", {Number(g, 1, a), a}); }
// 1 - a^2, as a product: a^2 may round to 1.
tw_edge OneLessSquare(const tw::Grad& g, tw_edge a) { return g.op("Mul", {g.op("Sub", {Number(g, 1, a), a}), Plus1(g, a)}); }
void Times(const tw::Grad& g, tw_edge slope) { g.dx(0, g.op("Mul", {g.dy(), slope})); }
void Over(const tw::Grad& g, tw_edge slope) { g.dx(0, g.op("RealDiv", {g.dy(), slope})); }

void TanGradient(const tw::Grad& g) { Times(g, Plus1(g, g.op("Square", {Y(g)}))); }
void AsinGradient(const tw::Grad& g) { Over(g, g.op("Sqrt", {OneLessSquare(g, X(g))})); }
void AcosGradient(const tw::Grad& g) { Over(g, g.op("Neg", {g.op("Sqrt", {OneLessSquare(g, X(g))})})); }
void AtanGradient(const tw::Grad& g) { Over(g, Plus1(g, g.op("Square", {X(g)}))); }
void SinhGradient(const tw::Grad& g) { Times(g, g.op("Cosh", {X(g)})); }
void CoshGradient(const tw::Grad& g) { Times(g, g.op("Sinh", {X(g)})); }
void AsinhGradient(const tw::Grad& g) { Over(g, g.op("Cosh", {Y(g)})); }
void AcoshGradient(const tw::Grad& g) { Over(g, g.op("Sinh", {Y(g)})); }
void AtanhGradient(const tw::Grad& g) { Over(g, OneLessSquare(g, X(g))); }

template <void (*Gradient)(const tw::Grad&)>
void Unary(tw::Plugin& p, const std::string& name, const std::string& doc) {
  p.op<Gradient>(name + "(x: T[*s]) -> (y: T[*s]); T: " OPS_FLOATS_COMPLEX "; ?elementwise; doc \"" + doc + "\"");
}

}  // namespace

void register_trigonometry(tw::Plugin& p) {
  Unary<TanGradient>(p, "Tan", "tangent of radians");
  Unary<AsinGradient>(p, "Asin", "the angle in [-pi/2, pi/2] whose sine is x; NaN outside [-1, 1]");
  Unary<AcosGradient>(p, "Acos", "the angle in [0, pi] whose cosine is x; NaN outside [-1, 1]");
  Unary<AtanGradient>(p, "Atan", "the angle in [-pi/2, pi/2] whose tangent is x");
  Unary<SinhGradient>(p, "Sinh", "hyperbolic sine");
  Unary<CoshGradient>(p, "Cosh", "hyperbolic cosine");
  Unary<AsinhGradient>(p, "Asinh", "the number whose hyperbolic sine is x");
  Unary<AcoshGradient>(p, "Acosh", "the number from 0 on whose hyperbolic cosine is x; NaN below 1");
  Unary<AtanhGradient>(p, "Atanh", "the number whose hyperbolic tangent is x; infinite at -1 and 1, NaN beyond");
}

}  // namespace thalweg::ops
