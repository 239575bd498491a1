// Qr, Svd and SelfAdjointEigV2 factor matrices into orthogonal matrices and simple ones.
#include <algorithm>

#include "ops/common/matrix.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

struct Sizes {
  MaybeDims batch;
  int64_t rows = -1, columns = -1;
  int64_t least() const { return Known(rows) && Known(columns) ? std::min(rows, columns) : rows == columns ? rows : -1; }
};
Sizes SizesOf(const MaybeDims& matrices) {
  if (!matrices) return {};
  return {BatchOf(matrices), (*matrices)[matrices->size() - 2], matrices->back()};
}
void SetMatrices(const tw::Shape& s, uint32_t o, const Sizes& sizes, const Dims& last) {
  if (sizes.batch) s.out(o, Join(*sizes.batch, last));
}

void QrRule(const tw::Shape& s) {
  const Sizes in = SizesOf(Matrices(s, 0, "input"));
  const int64_t inner = s.b("full_matrices") ? in.rows : in.least();
  SetMatrices(s, 0, in, {in.rows, inner});
  SetMatrices(s, 1, in, {inner, in.columns});
}

void SvdRule(const tw::Shape& s) {
  const Sizes in = SizesOf(Matrices(s, 0, "input"));
  SetMatrices(s, 0, in, {in.least()});
  if (!s.b("compute_uv")) {
    s.out(1, Dims{0});
    s.out(2, Dims{0});
    return;
  }
  const bool full = s.b("full_matrices");
  SetMatrices(s, 1, in, {in.rows, full ? in.rows : in.least()});
  SetMatrices(s, 2, in, {in.columns, full ? in.columns : in.least()});
}

void EigenRule(const tw::Shape& s) {
  const Sizes in = SizesOf(SquareMatrices(s, 0, "input"));
  SetMatrices(s, 0, in, {in.rows});
  if (s.b("compute_v"))
    SetMatrices(s, 1, in, {in.rows, in.rows});
  else
    s.out(1, Dims{0});
}

[[noreturn]] void Undefined(const std::string& what) { throw tw::Error{TW_UNIMPLEMENTED, what}; }
bool IsComplex(uint32_t type) { return type == TW_COMPLEX64 || type == TW_COMPLEX128; }

// The static sizes of the factored matrices.
Sizes StaticSizes(const tw::Grad& g) { return SizesOf(ShapeIn(g, 0)); }

// Returns X R^-H for an upper triangular R.
tw_edge RightSolve(const tw::Grad& g, tw_edge x, tw_edge r) {
  return Adjoint(g, g.op("MatrixTriangularSolve", {r, Adjoint(g, x)}, {{"lower", false}}));
}

// The gradient of a factorisation with at least as many rows as columns.
tw_edge QrBackward(const tw::Grad& g, tw_edge q, tw_edge r, tw_edge dq, tw_edge dr) {
  const tw_edge qdq = Product(g, q, dq, true), rdr = Product(g, r, dr, false, true);
  const tw_edge sum = g.op("AddV2", {g.op("Sub", {qdq, Adjoint(g, qdq)}), g.op("Sub", {rdr, Adjoint(g, rdr)})});
  const tw_edge along = Product(g, q, g.op("AddV2", {dr, RightSolve(g, Band(g, sum, -1, 0), r)}));
  tw_edge dx = g.op("AddV2", {along, RightSolve(g, g.op("Sub", {dq, Product(g, q, qdq)}), r)});
  if (!IsComplex(TypeOf(g, q))) return dx;
  // The diagonal of R is real.
  const tw_edge diagonal = Band(g, g.op("Sub", {rdr, Adjoint(g, qdq)}), 0, 0);
  const tw_edge turn = g.op("Sub", {diagonal, RealPart(g, diagonal)});
  return g.op("AddV2", {dx, RightSolve(g, Product(g, q, turn, false, true), r)});
}

// Returns the first n columns of matrices, or those behind them. n: a vector of one number.
tw_edge FirstColumns(const tw::Grad& g, tw_edge a, tw_edge n) {
  return g.op("StridedSlice", {a, Ints(g, {0, 0}), Concat(g, {Ints(g, {0}), n}), Ints(g, {1, 1})},
              {{"ellipsis_mask", 1}, {"begin_mask", 2}});
}
tw_edge LastColumns(const tw::Grad& g, tw_edge a, tw_edge n) {
  return g.op("StridedSlice", {a, Concat(g, {Ints(g, {0}), n}), Ints(g, {0, 0}), Ints(g, {1, 1})}, {{"ellipsis_mask", 1}, {"end_mask", 2}});
}

void QrGradient(const tw::Grad& g) {
  const Sizes sizes = StaticSizes(g);
  const bool known = Known(sizes.rows) && Known(sizes.columns);
  if (g.b("full_matrices") && known && sizes.rows > sizes.columns)
    Undefined("the gradient of Qr with full_matrices exists only where there are not more rows than columns, but there are " +
              tw::text(sizes.rows) + " and " + tw::text(sizes.columns));
  const tw_edge q = g.y(0), r = g.y(1), dq = g.dy(0), dr = g.dy(1);
  if (known && sizes.rows >= sizes.columns) return g.dx(0, QrBackward(g, q, r, dq, dr));
  // A = [X, Y], R = [U, V] with a square U: X = Q U, Y = Q V. If A has no more columns than rows, Y and V have none.
  const tw_edge n = Tail(g, ShapeOf(g, q), -1), y = LastColumns(g, g.x(0), n), dv = LastColumns(g, dr, n);
  const tw_edge u = FirstColumns(g, r, n), du = FirstColumns(g, dr, n);
  const tw_edge dx = QrBackward(g, q, u, g.op("AddV2", {dq, Product(g, y, dv, false, true)}), du);
  g.dx(0, g.op("ConcatV2", {dx, Product(g, q, dv), Int(g, -1)}));
}

// Returns 1 / (values[j] - values[i]) at [..., i, j], 0 where the difference is 0.
tw_edge Gaps(const tw::Grad& g, tw_edge values) {
  const tw_edge gaps = g.op("Sub", {g.op("ExpandDims", {values, Int(g, -2)}), g.op("ExpandDims", {values, Int(g, -1)})});
  return g.op("DivNoNan", {Number(g, 1, gaps), gaps});
}

void SvdGradient(const tw::Grad& g) {
  const bool with_vectors = g.b("compute_uv");
  const tw_edge ds = g.dy(0);
  if (!with_vectors) {
    const tw_edge factors = g.op("Svd", {g.x(0)});
    return g.dx(0, Product(g, Product(g, g.out(factors, 1), Diagonal(g, ds)), g.out(factors, 2), false, true));
  }
  const tw_edge s = g.y(0), u = g.y(1), v = g.y(2);
  if (!g.has_dy(1) && !g.has_dy(2) && !g.b("full_matrices")) return g.dx(0, Product(g, Product(g, u, Diagonal(g, ds)), v, false, true));
  if (IsComplex(g.type_in(0)))
    Undefined(
        "the gradient of the singular vectors of complex matrices is not offered: they are defined up to a factor of magnitude 1 only");
  const Sizes sizes = StaticSizes(g);
  const bool known = Known(sizes.rows) && Known(sizes.columns);
  if (g.b("full_matrices") && known && sizes.rows != sizes.columns)
    Undefined("the gradient of Svd with full_matrices exists only for square matrices, but they have " + tw::text(sizes.rows) +
              " rows and " + tw::text(sizes.columns) + " columns");
  const tw_edge du = g.dy(1), dv = g.dy(2);
  const tw_edge uu = Product(g, u, du, true), vv = Product(g, v, dv, true), f = Gaps(g, g.op("Mul", {s, s}));
  const auto turn = [&](tw_edge m) { return g.op("Mul", {f, g.op("Sub", {m, Adjoint(g, m)})}); };
  const tw_edge across = g.op("ExpandDims", {s, Int(g, -2)}), down = g.op("ExpandDims", {s, Int(g, -1)});
  tw_edge middle = g.op("AddV2", {g.op("Mul", {turn(uu), across}), g.op("Mul", {down, turn(vv)})});
  middle = g.op("AddV2", {middle, Diagonal(g, ds)});
  tw_edge dx = Product(g, Product(g, u, middle), v, false, true);
  // The parts of du and dv that are orthogonal to all columns of u and v; square matrices have none.
  if (!known || sizes.rows > sizes.columns) {
    const tw_edge rest = g.op("RealDiv", {g.op("Sub", {du, Product(g, u, uu)}), across});
    dx = g.op("AddV2", {dx, Product(g, rest, v, false, true)});
  }
  if (!known || sizes.rows < sizes.columns) {
    const tw_edge rest = g.op("RealDiv", {g.op("Sub", {dv, Product(g, v, vv)}), across});
    dx = g.op("AddV2", {dx, Product(g, u, rest, false, true)});
  }
  g.dx(0, dx);
}

// The op reads the lower triangle, which stands for the other one, too.
void EigenGradient(const tw::Grad& g) {
  const bool with_vectors = g.b("compute_v");
  const tw_edge e = g.y(0), v = with_vectors ? g.y(1) : g.out(g.op("SelfAdjointEigV2", {g.x(0)}), 1);
  tw_edge middle = Diagonal(g, g.dy(0));
  if (with_vectors && g.has_dy(1)) middle = g.op("AddV2", {middle, g.op("Mul", {Gaps(g, e), Product(g, v, g.dy(1), true)})});
  const tw_edge full = Product(g, Product(g, v, middle), v, false, true);
  const tw_edge both = Band(g, g.op("AddV2", {full, Adjoint(g, full)}), -1, 0);
  g.dx(0, g.op("Sub", {both, Scale(g, Band(g, both, 0, 0), 0.5)}));
}

#define TYPES "T: " OPS_MATRIX_TYPES "; "

}  // namespace

void register_matrix_factors(tw::Plugin& p) {
  p.op<QrGradient, QrRule>("Qr(input: T) -> (q: T, r: T); full_matrices: bool = false; " TYPES
                           "doc \"input = q r with orthonormal columns in q and an upper triangular r\"");
  p.op<SvdGradient, SvdRule>("Svd(input: T) -> (s: T, u: T, v: T); compute_uv: bool = true; full_matrices: bool = false; " TYPES
                             "doc \"input = u diag(s) v' with orthonormal columns in u and v; s falls\"");
  p.op<EigenGradient, EigenRule>(
      "SelfAdjointEigV2(input: T) -> (e: T, v: T); compute_v: bool = true; " TYPES
      "doc \"eigenvalues, rising, and eigenvectors of Hermitian matrices, of which the lower triangles are read\"");
}

}  // namespace thalweg::ops
