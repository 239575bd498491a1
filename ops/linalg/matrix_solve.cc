// Solutions of linear systems, inverses and determinants of square matrices.
#include "ops/common/matrix.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

void InverseRule(const tw::Shape& s) { Set(s, 0, SquareMatrices(s, 0, "input")); }

void DeterminantRule(const tw::Shape& s) {
  const MaybeDims batch = BatchOf(SquareMatrices(s, 0, "input"));
  for (uint32_t o = 0; o < s.c->n_out; ++o) Set(s, o, batch);
}

// Checks that a system of `rows` equations has right hand sides with as many rows. Returns their
// number of columns.
int64_t Columns(const tw::Shape& s, const MaybeDims& matrix, const MaybeDims& rhs, int64_t* rows) {
  *rows = MergeSize(s, matrix ? matrix->back() : -1, rhs ? (*rhs)[rhs->size() - 2] : -1, "the rows of 'matrix' and of 'rhs'");
  return rhs ? rhs->back() : -1;
}

void SolveRule(const tw::Shape& s) {
  const MaybeDims matrix = SquareMatrices(s, 0, "matrix"), rhs = Matrices(s, 1, "rhs");
  int64_t rows = -1;
  const int64_t columns = Columns(s, matrix, rhs, &rows);
  const MaybeDims batch = Merge(s, BatchOf(matrix), BatchOf(rhs), "the axes of 'matrix' and of 'rhs' before the last two");
  if (batch) s.out(0, Join(*batch, {rows, columns}));
}

void TriangularRule(const tw::Shape& s) {
  const MaybeDims matrix = SquareMatrices(s, 0, "matrix"), rhs = Matrices(s, 1, "rhs");
  int64_t rows = -1;
  const int64_t columns = Columns(s, matrix, rhs, &rows);
  if (!matrix || !rhs) return;
  if (!Broadcastable(BatchOf(matrix), BatchOf(rhs)))
    Fail("'matrix' is " + Text(matrix) + " and 'rhs' is " + Text(rhs) + "; their axes before the last two do not broadcast");
  if (const MaybeDims batch = Broadcast(BatchOf(matrix), BatchOf(rhs))) s.out(0, Join(*batch, {rows, columns}));
}

// The inverse Y of X: dX = -Y' dY Y'. With `adjoint` the result Z is Y': dX = -Z dY' Z.
void InverseGradient(const tw::Grad& g) {
  const bool adjoint = g.b("adjoint");
  const tw_edge inner = Product(g, g.dy(), g.y(), adjoint, !adjoint);
  g.dx(0, g.op("Neg", {Product(g, g.y(), inner, !adjoint)}));
}

tw_edge InverseAdjoint(const tw::Grad& g) { return g.op("MatrixInverse", {g.x(0)}, {{"adjoint", true}}); }

void DeterminantGradient(const tw::Grad& g) {
  const tw_edge factor = g.op("Mul", {g.dy(), Conj(g, g.y())});
  g.dx(0, g.op("Mul", {PerMatrix(g, factor), InverseAdjoint(g)}));
}

// The logarithm of |det| changes by the real part of tr(X^-1 dX), and the argument of det by the
// imaginary part.
void LogDeterminantGradient(const tw::Grad& g) {
  const uint32_t type = g.type_in(0);
  tw_edge factor = g.dy(1);
  if (type == TW_COMPLEX64 || type == TW_COMPLEX128) {
    const tw_edge turn = g.op("Mul", {g.dy(0), Conj(g, g.y(0))});
    factor = Complex(g, Part(g, "Real", factor), Part(g, "Imag", turn));
  }
  g.dx(0, g.op("Mul", {PerMatrix(g, factor), InverseAdjoint(g)}));
}

// Y = X^-1 B: dB = X^-H dY, dX = -dB Y'.
void SolveGradient(const tw::Grad& g) {
  const bool adjoint = g.b("adjoint");
  const tw_edge db = g.op("MatrixSolve", {g.x(0), g.dy()}, {{"adjoint", !adjoint}});
  g.dx(1, db);
  g.dx(0, g.op("Neg", {adjoint ? Product(g, g.y(), db, false, true) : Product(g, db, g.y(), false, true)}));
}

void TriangularGradient(const tw::Grad& g) {
  const bool adjoint = g.b("adjoint"), lower = g.b("lower");
  const tw_edge db = g.op("MatrixTriangularSolve", {g.x(0), g.dy()}, {{"adjoint", !adjoint}, {"lower", lower}});
  const tw_edge full = adjoint ? Product(g, g.y(), db, false, true) : Product(g, db, g.y(), false, true);
  const tw_edge da = g.op("Neg", {Band(g, full, lower ? -1 : 0, lower ? 0 : -1)});
  BroadcastGradient(g, da, db, 2);
}

#define TYPES "T: " OPS_MATRIX_TYPES "; "

}  // namespace

void register_matrix_solve(tw::Plugin& p) {
  p.op<InverseGradient, InverseRule>("MatrixInverse(input: T) -> (output: T); adjoint: bool = false; " TYPES
                                     "doc \"the inverses of square matrices, or of their adjoints\"");
  p.op<DeterminantGradient, DeterminantRule>(
      "MatrixDeterminant(input: T) -> (output: T); T: {half, float, double, complex64, complex128}; doc \"the determinants of square "
      "matrices\"");
  p.op<LogDeterminantGradient, DeterminantRule>(
      "LogMatrixDeterminant(input: T) -> (sign: T, log_abs_determinant: T); T: {half, float, double, complex64, complex128}; doc \"the "
      "determinants of square matrices as a factor of magnitude 1 and the logarithm of their magnitude\"");
  p.op<SolveGradient, SolveRule>("MatrixSolve(matrix: T, rhs: T) -> (output: T); adjoint: bool = false; " TYPES
                                 "doc \"the solutions X of matrix X = rhs, for square matrices\"");
  p.op<TriangularGradient, TriangularRule>(
      "MatrixTriangularSolve(matrix: T, rhs: T) -> (output: T); lower: bool = true; adjoint: bool = false; T: {bfloat16, double, float, "
      "half, complex64, complex128}; doc \"the solutions X of matrix X = rhs, for triangular matrices\"");
}

}  // namespace thalweg::ops
