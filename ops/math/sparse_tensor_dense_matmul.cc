// SparseTensorDenseMatMul multiplies a sparse matrix by a dense one; either may be adjoint.
#include "ops/common/grad.h"
#include "ops/common/types.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

enum : uint32_t { kIndices, kValues, kShape, kB };

// Returns the sizes of the sparse matrix; -1 if unknown. Their product may exceed int64, since only
// stored elements take memory.
Dims MatrixSizes(const tw::Shape& s) {
  WantVector(s, kShape, "a_shape");
  if (s.known(kShape)) MergeSize(s, s.dim(kShape, 0), 2, "the length that 'a_shape' has and that it must have");
  Dims sizes;
  if (!s.value(kShape, &sizes)) return {-1, -1};
  for (int64_t size : sizes)
    if (size < 0) Fail("'a_shape' is " + Text(sizes) + "; sizes must not be negative");
  return sizes;
}

void Rule(const tw::Shape& s) {
  WantRank(s, kIndices, 2, "a_indices");
  WantVector(s, kValues, "a_values");
  WantRank(s, kB, 2, "b");
  if (s.known(kIndices)) {
    MergeSize(s, s.dim(kIndices, 1), 2, "the columns that 'a_indices' has and that it must have");
    if (s.known(kValues)) MergeSize(s, s.dim(kIndices, 0), s.dim(kValues, 0), "the rows of 'a_indices' and the size of 'a_values'");
  }
  const bool adjoint_a = s.b("adjoint_a"), adjoint_b = s.b("adjoint_b");
  const Dims a = MatrixSizes(s), b = s.known(kB) ? *In(s, kB) : Dims{-1, -1};
  const int64_t inner_a = a[adjoint_a ? 0 : 1], inner_b = b[adjoint_b ? 1 : 0];
  if (Known(inner_a) && Known(inner_b) && inner_a != inner_b)
    Fail("inner dimensions differ: a_shape is " + Text(a) + (adjoint_a ? ", adjoint" : "") + ", b is " + tw::text(s.in(kB)) +
         (adjoint_b ? ", adjoint" : "") + "; set adjoint_" + (adjoint_b ? "a or clear adjoint_b" : "b") + ", or reshape b to have " +
         tw::text(inner_a) + (adjoint_b ? " columns" : " rows"));
  s.out(0, {a[adjoint_a ? 1 : 0], b[adjoint_b ? 0 : 1]});
}

// Let a' and b' be the matrices as they are multiplied. Element e of a' at row m and column k has
// the gradient <dy[m], conj(b'[k])>.
void Gradient(const tw::Grad& g) {
  const bool adjoint_a = g.b("adjoint_a"), adjoint_b = g.b("adjoint_b");
  const auto turned = [&](tw_edge e) { return g.op("Transpose", {e, Ints(g, {1, 0})}); };
  const tw_edge indices = g.x(kIndices), b = g.x(kB), dy = g.dy();

  const tw_edge back = g.op("SparseTensorDenseMatMul", {indices, g.x(kValues), g.x(kShape), dy}, {{"adjoint_a", !adjoint_a}});
  g.dx(kB, adjoint_b ? Conj(g, turned(back)) : back);

  // Products of 16-bit types are summed in float, as in the op.
  const uint32_t type = g.type_in(kB), wide = type == TW_HALF || type == TW_BFLOAT16 ? uint32_t{TW_FLOAT} : type;
  const auto rows = [&](tw_edge matrix, int64_t column) {
    const tw_edge at = g.op("GatherV2", {indices, Int(g, column), Int(g, 1)});
    return CastTo(g, g.op("GatherV2", {matrix, at, Int(g, 0)}), wide);
  };
  const tw_edge of_dy = rows(dy, adjoint_a ? 1 : 0), of_b = rows(adjoint_b ? turned(b) : Conj(g, b), adjoint_a ? 0 : 1);
  const tw_edge sums = CastTo(g, g.op("Sum", {g.op("Mul", {of_dy, of_b}), Int(g, 1)}), type);
  g.dx(kValues, adjoint_a ? Conj(g, sums) : sums);
}

}  // namespace

void register_sparse_tensor_dense_matmul(tw::Plugin& p) {
  p.op<Gradient, Rule>(
      "SparseTensorDenseMatMul(a_indices: Tindices, a_values: T, a_shape: int64, b: T) -> (product: T); T: type; Tindices: " OPS_INDEX
      " = int64; adjoint_a: bool = false; adjoint_b: bool = false; "
      "?data a_values b; doc \"a [m, k], whose elements at a_indices are a_values and whose others are 0, times b [k, n]\"");
}

}  // namespace thalweg::ops
