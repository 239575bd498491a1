// Cholesky and CholeskyGrad. Both read lower triangles only. Columns are computed one after the
// other, each from those on its left.
#include <cmath>

#include "kernels/matrices.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

// Replaces the lower triangle of a by its factor, and the rest by 0. Returns false if the matrix is
// not positive definite.
template <class C>
bool Factor(const MatrixAt<C>& a) {
  const int64_t n = a.rows;
  for (int64_t j = 0; j < n; ++j) {
    C* column = a.column(j);
    for (int64_t k = 0; k < j; ++k) {
      const C* left = a.column(k);
      const C factor = Conjugate(left[j]);
      for (int64_t i = j; i < n; ++i) column[i] -= left[i] * factor;
    }
    const double pivot = RealOf(column[j]);
    if (!(pivot > 0) || !std::isfinite(pivot)) return false;
    const double root = std::sqrt(pivot);
    column[j] = root;
    for (int64_t i = j + 1; i < n; ++i) column[i] /= root;
    for (int64_t i = 0; i < j; ++i) column[i] = 0;
  }
  return true;
}

void Cholesky(tw::Frame f, tw::In<tw::Any> input, tw::Out<tw::Any> output) {
  const MatrixSizes sizes(input.v);
  if (input.size() == 0) return;
  const int64_t n = sizes.rows, count = int64_t(input.size()) / sizes.size();
  InField(input.v->dtype, [&](auto zero) {
    using C = decltype(zero);
    ForMatrices<C>(f.f, count, Cost(n, n, n), uint64_t(n * n), [&](int64_t k, C* room) {
      const MatrixAt<C> a{room, n, n};
      Load(input.v, k, a);
      if (!Factor(a)) {  // as in TensorFlow, the lower triangle tells
        for (int64_t j = 0; j < n; ++j)
          for (int64_t i = 0; i < n; ++i) a(i, j) = i < j ? C(0) : C(NAN);
      }
      Store(output.v(), k, a);
    });
  });
}

// Replaces x by L^-H x.
void SolveTransposed(const MatrixAt<double>& l, const MatrixAt<double>& x) {
  const int64_t n = l.rows;
  for (int64_t c = 0; c < x.columns; ++c) {
    double* b = x.column(c);
    for (int64_t i = n; i-- > 0;) {
      const double* column = l.column(i);
      double sum = b[i];
      for (int64_t k = i + 1; k < n; ++k) sum -= column[k] * b[k];
      b[i] = sum / column[i];
    }
  }
}

// The gradient is sym(L^-T phi(L' dL) L^-1), where phi keeps the lower triangle and half of the
// diagonal.
void CholeskyGrad(tw::Frame f, tw::In<tw::Any> l, tw::In<tw::Any> grad, tw::Out<tw::Any> output) {
  const MatrixSizes sizes(l.v);
  if (l.size() != grad.size()) Invalid("l " + DimsText(l.v) + " and grad " + DimsText(grad.v) + " do not fit together");
  if (l.size() == 0) return;
  const int64_t n = sizes.rows, count = int64_t(l.size()) / sizes.size();
  ForMatrices<double>(f.f, count, Cost(n, n, n), 3 * uint64_t(n * n), [&](int64_t at, double* room) {
    const MatrixAt<double> a{room, n, n}, d{room + n * n, n, n}, x{d.data + n * n, n, n};
    Load(l.v, at, a);
    Load(grad.v, at, d);
    for (int64_t j = 0; j < n; ++j)
      for (int64_t i = 0; i < n; ++i) {
        double sum = 0;
        for (int64_t k = i; k < n; ++k) sum += a(k, i) * d(k, j);
        x(i, j) = i > j ? sum : i == j ? sum / 2 : 0;
      }
    SolveTransposed(a, x);
    for (int64_t j = 0; j < n; ++j)
      for (int64_t i = 0; i < n; ++i) d(i, j) = x(j, i);
    SolveTransposed(a, d);
    for (int64_t j = 0; j < n; ++j)
      for (int64_t i = 0; i < n; ++i) x(i, j) = (d(i, j) + d(j, i)) / 2;
    Store(output.v(), at, x);
  });
}

}  // namespace

void register_cholesky(tw::Plugin& p) {
  p.kernel<Cholesky>("Cholesky @CPU");
  p.kernel<CholeskyGrad>("CholeskyGrad @CPU");
}

}  // namespace thalweg::cpu
