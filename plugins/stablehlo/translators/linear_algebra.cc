// Fourier transforms, Cholesky's factors and triangular systems.
#include "linear_algebra.h"

#include <algorithm>
#include <iterator>
#include <numeric>

#include "common.h"

namespace thalweg::stablehlo {
namespace {

void Fft(Translation& t, Op& op) {
  const Value& x = op.in(0);
  const std::string type = op.s("fft_type");
  const std::vector<int64_t> length = op.ints("fft_length");
  const size_t axes = length.size();
  if (axes < 1 || axes > 3 || RankOf(op, x) < static_cast<int>(axes)) {
    op.fail("fft_length has " + std::to_string(axes) + " entries; 1 to 3 are possible, at most as many as axes");
  }
  const std::string suffix = axes == 1 ? "" : axes == 2 ? "2D" : "3D";
  if (type == "FFT" || type == "IFFT") return op.out(t.op(type + suffix, {x}));
  if (type != "RFFT" && type != "IRFFT") op.fail("fft_type is '" + type + "'; it must be FFT, IFFT, RFFT or IRFFT");
  const uint32_t out = op.out_dtype();
  const Attrs attrs = type == "RFFT" ? Attrs{{"Treal", Dtype{x.dtype()}}, {"Tcomplex", Dtype{out}}}
                                     : Attrs{{"Treal", Dtype{out}}, {"Tcomplex", Dtype{x.dtype()}}};
  op.out(t.op(type + suffix, {x, t.ints(length, TW_INT32)}, attrs));
}

void Cholesky(Translation& t, Op& op) {
  const Value& x = op.in(0);
  const bool lower = op.flag("lower");
  const Value factor = t.op("Cholesky", {lower ? x : Adjoint(t, x)});
  op.out(lower ? factor : Adjoint(t, factor));
}

void TriangularSolve(Translation& t, Op& op) {
  const std::string transpose = op.s("transpose_a", "NO_TRANSPOSE");
  if (transpose == "TRANSPOSE_INVALID") op.fail("transpose_a is TRANSPOSE_INVALID");
  op.out(SolveTriangular(t, op.in(0), op.in(1), op.flag("left_side"), op.flag("lower"), op.flag("unit_diagonal"), transpose == "TRANSPOSE",
                         transpose == "ADJOINT"));
}

constexpr Entry kLinearAlgebra[] = {
    {"stablehlo.cholesky", &Cholesky},
    {"stablehlo.fft", &Fft},
    {"stablehlo.triangular_solve", &TriangularSolve},
};

}  // namespace

Value Transposed(Translation& t, const Value& x) {
  std::vector<int64_t> perm(static_cast<size_t>(x.rank()));
  std::iota(perm.begin(), perm.end(), 0);
  if (perm.size() >= 2) std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return t.transpose(x, perm);
}

Value Adjoint(Translation& t, const Value& x) {
  const Value turned = Transposed(t, x);
  return IsComplex(x) ? t.op("Conj", {turned}) : turned;
}

Value SolveTriangular(Translation& t, const Value& matrix, const Value& rhs, bool left, bool lower, bool unit, bool transposed,
                      bool adjoint) {
  if (matrix.rank() < 2) throw Error{TW_INVALID_ARGUMENT, "the matrix must have rank 2 or more"};
  Value a = matrix;
  if (unit) {
    const std::vector<Value> sizes = SizesOf(t, a);
    const int rank = a.rank();
    const Value row = CountAlong(t, sizes[static_cast<size_t>(rank) - 2], 2, 0),
                column = CountAlong(t, sizes[static_cast<size_t>(rank) - 1], 2, 1);
    a = t.op("SelectV2", {t.op("Equal", {row, column}), Like(t, a, 1), a});
  }
  if (transposed) {
    a = Transposed(t, a);
    lower = !lower;
  }
  if (left) return t.op("MatrixTriangularSolve", {a, rhs}, {{"lower", lower}, {"adjoint", adjoint}});
  // X op(A) = B is op(A)' X' = B'. The adjoint of the adjoint is the matrix itself.
  const Value turned = Adjoint(t, rhs);
  return Adjoint(t, t.op("MatrixTriangularSolve", {a, turned}, {{"lower", lower}, {"adjoint", !adjoint}}));
}

Family linear_algebra_translators() { return {std::begin(kLinearAlgebra), std::end(kLinearAlgebra)}; }

}  // namespace thalweg::stablehlo
