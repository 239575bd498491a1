// MatMul multiplies two matrices; either may be transposed.
#include "ops/common/grad.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

void Rule(const tw::Shape& s) {
  WantRank(s, 0, 2, "a");
  WantRank(s, 1, 2, "b");
  const bool ta = s.b("transpose_a"), tb = s.b("transpose_b");
  const Dims a = s.known(0) ? *In(s, 0) : Dims{-1, -1}, b = s.known(1) ? *In(s, 1) : Dims{-1, -1};
  const int64_t inner_a = a[ta ? 0 : 1], inner_b = b[tb ? 1 : 0];
  if (Known(inner_a) && Known(inner_b) && inner_a != inner_b)
    Fail("inner dimensions differ: a is " + tw::text(s.in(0)) + (ta ? " transposed" : "") + ", b is " + tw::text(s.in(1)) +
         (tb ? " transposed" : "") + "; set transpose_" + (tb ? "a or clear transpose_b" : "b") + ", or reshape b to have " +
         tw::text(inner_a) + (tb ? " columns" : " rows"));
  s.out(0, {a[ta ? 1 : 0], b[tb ? 0 : 1]});
}

tw_edge Product(const tw::Grad& g, tw_edge a, bool ta, tw_edge b, bool tb) {
  return g.op("MatMul", {a, b}, {{"transpose_a", ta}, {"transpose_b", tb}});
}

// The gradient of a transposed factor is the transposed product, that is, the product with its
// factors swapped.
void Gradient(const tw::Grad& g) {
  const bool ta = g.b("transpose_a"), tb = g.b("transpose_b");
  const tw_edge dy = g.dy(), a = Conj(g, g.x(0)), b = Conj(g, g.x(1));
  g.dx(0, ta ? Product(g, b, tb, dy, true) : Product(g, dy, false, b, !tb));
  g.dx(1, tb ? Product(g, dy, true, a, ta) : Product(g, a, !ta, dy, false));
}

}  // namespace

void register_matmul(tw::Plugin& p) {
  p.op<Gradient, Rule>(
      "MatMul(a: T, b: T) -> (product: T); transpose_a: bool = false; transpose_b: bool = false; "
      "T: {half, bfloat16, float, double, int32, int64, uint8, uint16, uint32, uint64, complex64, complex128}; "
      "grad_a: bool = false; grad_b: bool = false; ?data a b; doc \"a [m, k] times b [k, n]; grad_a and grad_b only inform compilers\"");
}

}  // namespace thalweg::ops
