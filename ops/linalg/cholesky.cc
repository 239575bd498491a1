// Cholesky factors positive definite matrices; CholeskyGrad is its backward op.
#include "ops/common/matrix.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

void Rule(const tw::Shape& s) { Set(s, 0, SquareMatrices(s, 0, "input")); }

void GradRule(const tw::Shape& s) {
  SquareMatrices(s, 0, "l");
  SquareMatrices(s, 1, "grad");
  Set(s, 0, Merge(s, In(s, 0), In(s, 1), "the shapes of 'l' and 'grad'"));
}

tw_edge Solve(const tw::Grad& g, tw_edge l, tw_edge rhs) { return g.op("MatrixTriangularSolve", {l, rhs}, {{"adjoint", true}}); }

// With A = L L': dA = sym(L^-H phi(L' dL) L^-1), where phi keeps the lower triangle and half of the
// diagonal, and sym makes the result Hermitian.
tw_edge Backward(const tw::Grad& g, tw_edge l, tw_edge dl) {
  const tw_edge product = Product(g, l, dl, true);
  const tw_edge middle = g.op("Sub", {Band(g, product, -1, 0), Scale(g, Band(g, product, 0, 0), 0.5)});
  const tw_edge turned = Solve(g, l, Adjoint(g, Solve(g, l, middle)));
  return Scale(g, g.op("AddV2", {turned, Adjoint(g, turned)}), 0.5);
}

void Gradient(const tw::Grad& g) { g.dx(0, Backward(g, g.y(), g.dy())); }

}  // namespace

void register_cholesky(tw::Plugin& p) {
  p.op<Gradient, Rule>("Cholesky(input: T) -> (output: T); T: " OPS_MATRIX_TYPES
                       "; doc \"the lower triangular matrix L with L L' = the Hermitian positive definite input\"");
  p.op<nullptr, GradRule>(
      "CholeskyGrad(l: T, grad: T) -> (output: T); T: {half, float, double}; no_gradient \"differentiate Cholesky, whose gradient is made "
      "of ops that have gradients\"; doc \"gradient of Cholesky from its result l\"");
}

}  // namespace thalweg::ops
