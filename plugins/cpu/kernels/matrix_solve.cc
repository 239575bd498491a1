// MatrixInverse, MatrixDeterminant, LogMatrixDeterminant and MatrixSolve by a decomposition with
// partial pivoting; MatrixTriangularSolve by substitution.
#include <cmath>

#include <Eigen/LU>

#include "kernels/matrices.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

template <class C>
using Matrix = Eigen::Matrix<C, Eigen::Dynamic, Eigen::Dynamic>;
template <class C>
using MapOf = Eigen::Map<Matrix<C>>;
template <class C>
MapOf<C> Of(const MatrixAt<C>& m) {
  return {m.data, m.rows, m.columns};
}
template <class C>
using Decomposition = Eigen::PartialPivLU<Eigen::Ref<Matrix<C>>>;

[[noreturn]] void Singular(int64_t at, int64_t count) {
  Invalid("matrix " + tw::text(at) + " of " + tw::text(count) + " is not invertible");
}
// Refuses matrices with a diagonal element that is 0 or NaN.
template <class C>
void WantInvertible(const MatrixAt<C>& m, int64_t at, int64_t count) {
  for (int64_t i = 0; i < m.rows; ++i)
    if (!(std::abs(m(i, i)) > 0)) Singular(at, count);
}

class Inverse {
 public:
  explicit Inverse(const tw::Node& n) : adjoint_(n.b("adjoint")) {}
  void operator()(tw::Frame f, tw::In<tw::Any> input, tw::Out<tw::Any> output) const {
    const MatrixSizes sizes(input.v);
    if (input.size() == 0) return;
    const int64_t n = sizes.rows, count = int64_t(input.size()) / sizes.size();
    InField(input.v->dtype, [&](auto zero) {
      using C = decltype(zero);
      ForMatrices<C>(f.f, count, Cost(n, n, n), 2 * uint64_t(sizes.size()), [&](int64_t k, C* room) {
        const MatrixAt<C> a{room, n, n}, inverse{room + n * n, n, n};
        Load(input.v, k, a, adjoint_);
        MapOf<C> map = Of(a);
        Eigen::Ref<Matrix<C>> ref(map);
        const Decomposition<C> lu(ref);
        WantInvertible(a, k, count);
        Of(inverse) = lu.inverse();
        Store(output.v(), k, inverse);
      });
    });
  }

 private:
  bool adjoint_;
};

class Solve {
 public:
  explicit Solve(const tw::Node& n) : adjoint_(n.b("adjoint")) {}
  void operator()(tw::Frame f, tw::In<tw::Any> matrix, tw::In<tw::Any> rhs, tw::Out<tw::Any> output) const {
    const MatrixSizes sizes(matrix.v), right(rhs.v);
    if (output.size() == 0) return;
    const int64_t n = sizes.rows, columns = right.columns, count = int64_t(output.size()) / right.size();
    if (sizes.columns != n || right.rows != n || int64_t(matrix.size()) != count * n * n || rhs.size() != output.size())
      Invalid("matrix " + DimsText(matrix.v) + " and rhs " + DimsText(rhs.v) + " do not fit together");
    InField(matrix.v->dtype, [&](auto zero) {
      using C = decltype(zero);
      ForMatrices<C>(f.f, count, Cost(n, n, n + columns), uint64_t(n * n + 2 * n * columns), [&](int64_t k, C* room) {
        const MatrixAt<C> a{room, n, n}, b{room + n * n, n, columns}, x{b.data + n * columns, n, columns};
        Load(matrix.v, k, a, adjoint_);
        Load(rhs.v, k, b);
        MapOf<C> map = Of(a);
        Eigen::Ref<Matrix<C>> ref(map);
        const Decomposition<C> lu(ref);
        WantInvertible(a, k, count);
        Of(x) = lu.solve(Of(b));
        Store(output.v(), k, x);
      });
    });
  }

 private:
  bool adjoint_;
};

// Calls body(k, sign, a) for each matrix: the sign of the row exchanges, and a matrix whose diagonal
// holds the factors of the determinant.
template <class C, class F>
void ForPivots(const tw_frame* f, const tw_view* input, int64_t count, F&& body) {
  const MatrixSizes sizes(input);
  const int64_t n = sizes.rows;
  if (sizes.columns != n) Invalid("input " + DimsText(input) + " does not hold square matrices");
  ForMatrices<C>(f, count, Cost(n, n, n), uint64_t(n * n), [&](int64_t k, C* room) {
    const MatrixAt<C> a{room, n, n};
    if (n == 0) return body(k, 1.0, a);
    Load(input, k, a);
    MapOf<C> map = Of(a);
    Eigen::Ref<Matrix<C>> ref(map);
    const Decomposition<C> lu(ref);
    body(k, double(lu.permutationP().determinant()), a);
  });
}

void Determinant(tw::Frame f, tw::In<tw::Any> input, tw::Out<tw::Any> output) {
  InField(input.v->dtype, [&](auto zero) {
    using C = decltype(zero);
    ForPivots<C>(f.f, input.v, int64_t(output.size()), [&](int64_t k, double sign, const MatrixAt<C>& a) {
      C product(sign);
      for (int64_t i = 0; i < a.rows; ++i) product *= a(i, i);
      Write(output.v(), uint64_t(k), product);
    });
  });
}

void LogDeterminant(tw::Frame f, tw::In<tw::Any> input, tw::Out<tw::Any> sign, tw::Out<tw::Any> log_abs) {
  InField(input.v->dtype, [&](auto zero) {
    using C = decltype(zero);
    ForPivots<C>(f.f, input.v, int64_t(sign.size()), [&](int64_t k, double exchanges, const MatrixAt<C>& a) {
      C turn(exchanges);
      double sum = 0;
      for (int64_t i = 0; i < a.rows; ++i) {
        const double size = std::abs(a(i, i));
        sum += std::log(size);
        turn = size == 0 ? C(0) : turn * (a(i, i) / size);
      }
      Write(sign.v(), uint64_t(k), sum == -INFINITY ? C(0) : turn);
      Write(log_abs.v(), uint64_t(k), C(sum));
    });
  });
}

// Solves one triangular system in place. The matrix is lower triangular, or upper triangular.
template <class C>
void Substitute(const MatrixAt<C>& a, const MatrixAt<C>& x, bool lower) {
  const MapOf<C> map = Of(a);
  MapOf<C> result = Of(x);
  if (lower)
    map.template triangularView<Eigen::Lower>().solveInPlace(result);
  else
    map.template triangularView<Eigen::Upper>().solveInPlace(result);
}

class TriangularSolve {
 public:
  explicit TriangularSolve(const tw::Node& n) : lower_(n.b("lower")), adjoint_(n.b("adjoint")) {}
  void operator()(tw::Frame f, tw::In<tw::Any> matrix, tw::In<tw::Any> rhs, tw::Out<tw::Any> output) const {
    const MatrixSizes sizes(matrix.v), right(rhs.v);
    if (output.size() == 0) return;
    const int64_t n = sizes.rows, columns = right.columns, count = int64_t(output.size()) / right.size();
    if (sizes.columns != n || right.rows != n)
      Invalid("matrix " + DimsText(matrix.v) + " and rhs " + DimsText(rhs.v) + " do not fit together");
    InField(matrix.v->dtype, [&](auto zero) {
      using C = decltype(zero);
      ForMatrices<C>(f.f, count, Cost(n, n, columns), uint64_t(n * n + n * columns), [&](int64_t k, C* room) {
        const MatrixAt<C> a{room, n, n}, x{room + n * n, n, columns};
        Load(matrix.v, Entry(matrix.v, output.v(), k), a, adjoint_);
        WantInvertible(a, k, count);
        Load(rhs.v, Entry(rhs.v, output.v(), k), x);
        Substitute(a, x, lower_ != adjoint_);
        Store(output.v(), k, x);
      });
    });
  }

 private:
  // Returns the number of the matrix of `v` that entry k of the result is made from: axes before the
  // last two broadcast.
  static int64_t Entry(const tw_view* v, const tw_view* result, int64_t k) {
    int64_t entry = 0, step = 1;
    for (int32_t axis = result->rank - 3; axis >= 0; --axis) {
      const int64_t size = result->dims[axis], at = k % size;
      k /= size;
      const int32_t own = axis - (result->rank - v->rank);
      if (own < 0) continue;
      if (v->dims[own] > 1) entry += at * step;
      step *= v->dims[own];
    }
    return entry;
  }

  bool lower_, adjoint_;
};

}  // namespace

void register_matrix_solve(tw::Plugin& p) {
  p.kernel<Inverse>("MatrixInverse @CPU");
  p.kernel<Solve>("MatrixSolve @CPU");
  p.kernel<Determinant>("MatrixDeterminant @CPU");
  p.kernel<LogDeterminant>("LogMatrixDeterminant @CPU");
  p.kernel<TriangularSolve>("MatrixTriangularSolve @CPU");
}

}  // namespace thalweg::cpu
