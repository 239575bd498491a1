// BatchMatMul, BatchMatMulV2 and BatchMatMulV3 multiply the matrices in the last two axes. The axes
// before them broadcast, except in BatchMatMul, where they must be equal.
#include "ops/common/grad.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

void Rule(const tw::Shape& s) {
  WantRankAtLeast(s, 0, 2, "x");
  WantRankAtLeast(s, 1, 2, "y");
  const MaybeDims x = In(s, 0), y = In(s, 1);
  if (!x || !y) return;
  const bool ax = s.b("adj_x"), ay = s.b("adj_y");
  const size_t nx = x->size() - 2, ny = y->size() - 2;
  const int64_t inner_x = (*x)[nx + (ax ? 0 : 1)], inner_y = (*y)[ny + (ay ? 1 : 0)];
  if (Known(inner_x) && Known(inner_y) && inner_x != inner_y)
    Fail("inner dimensions differ: x is " + Text(x) + (ax ? " transposed" : "") + ", y is " + Text(y) + (ay ? " transposed" : "") +
         "; set adj_" + (ay ? "x or clear adj_y" : "y") + ", or reshape y to have " + tw::text(inner_x) + (ay ? " columns" : " rows"));
  const MaybeDims batch_x = Sub(*x, 0, nx), batch_y = Sub(*y, 0, ny);
  if (!Broadcastable(batch_x, batch_y))
    Fail("the batch axes of x, which is " + Text(x) + ", and of y, which is " + Text(y) +
         ", do not broadcast; make their sizes equal or 1");
  s.out(0, Join(*Broadcast(batch_x, batch_y), {(*x)[nx + (ax ? 1 : 0)], (*y)[ny + (ay ? 0 : 1)]}));
}

void EqualBatchRule(const tw::Shape& s) {
  WantRankAtLeast(s, 0, 2, "x");
  WantRankAtLeast(s, 1, 2, "y");
  const MaybeDims x = In(s, 0), y = In(s, 1);
  if (x && y) Merge(s, Sub(*x, 0, x->size() - 2), Sub(*y, 0, y->size() - 2), "the batch axes of 'x' and 'y'");
  Rule(s);
}

tw_edge Product(const tw::Grad& g, tw_edge x, bool ax, tw_edge y, bool ay) {
  return g.op("BatchMatMulV2", {x, y}, {{"adj_x", ax}, {"adj_y", ay}});
}

// The gradient is that of MatMul; the adjoint includes the conjugates that complex values need.
void Gradient(const tw::Grad& g) {
  const bool ax = g.b("adj_x"), ay = g.b("adj_y");
  const tw_edge dy = g.dy(), x = g.x(0), y = g.x(1);
  BroadcastGradient(g, ax ? Product(g, y, ay, dy, true) : Product(g, dy, false, y, !ay),
                    ay ? Product(g, dy, true, x, ax) : Product(g, x, !ax, dy, false), 2);
}

// Computes in the type of the product, which holds the numbers of both factors.
void MixedGradient(const tw::Grad& g) {
  const bool ax = g.b("adj_x"), ay = g.b("adj_y");
  const uint32_t type = g.type_out(0);
  const tw_edge dy = g.dy(), x = CastTo(g, g.x(0), type), y = CastTo(g, g.x(1), type);
  const tw_edge dx = CastTo(g, ax ? Product(g, y, ay, dy, true) : Product(g, dy, false, y, !ay), g.type_in(0));
  BroadcastGradient(g, dx, CastTo(g, ay ? Product(g, dy, true, x, ax) : Product(g, x, !ax, dy, false), g.type_in(1)), 2);
}

#define CLAUSES "adj_x: bool = false; adj_y: bool = false; grad_x: bool = false; grad_y: bool = false; ?data x y; "
#define FACTORS "{half, bfloat16, float, double, int8, int16, int32, int64, uint8, complex64, complex128}"

}  // namespace

void register_batch_matmul(tw::Plugin& p) {
  p.op<Gradient, EqualBatchRule>(
      "BatchMatMul(x: T, y: T) -> (output: T); T: {half, bfloat16, float, double, int32, int64, complex64, complex128}; " CLAUSES
      "doc \"x [..., m, k] times y [..., k, n]; the axes before the last two are equal; adj takes the adjoint of that factor\"");
  p.op<Gradient, Rule>(
      "BatchMatMulV2(x: T, y: T) -> (output: T); "
      "T: {half, bfloat16, float, double, int16, int32, int64, uint8, uint16, uint32, uint64, complex64, complex128}; " CLAUSES
      "doc \"x [..., m, k] times y [..., k, n]; the axes before the last two broadcast; adj takes the adjoint of that factor\"");
  p.op<MixedGradient, Rule>("BatchMatMulV3(x: Ta, y: Tb) -> (output: Tout); Ta: " FACTORS "; Tb: " FACTORS
                            "; Tout: {half, bfloat16, float, double, int16, int32, int64, complex64, complex128}; " CLAUSES
                            "doc \"BatchMatMulV2 of factors that become Tout first, which must hold all numbers of their types\"");
}

}  // namespace thalweg::ops
