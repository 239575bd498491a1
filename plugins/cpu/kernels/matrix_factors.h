// Householder's QR factorisation and Jacobi's singular value decomposition of one matrix, in double
// or complex128.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_MATRIX_FACTORS_H_
#define THALWEG_PLUGINS_CPU_KERNELS_MATRIX_FACTORS_H_

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/matrices.h"

namespace thalweg::cpu {

// Returns the product conj(x) y of two columns.
template <class C>
C Inner(const C* x, const C* y, int64_t n) {
  C sum(0);
  for (int64_t i = 0; i < n; ++i) sum += Conjugate(x[i]) * y[i];
  return sum;
}
template <class C>
double SquaredNorm(const C* x, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += std::norm(x[i]);
  return sum;
}

// Divides a matrix by a power of two so that its squares neither overflow nor vanish. Returns that
// power.
template <class C>
double Unit(const MatrixAt<C>& a) {
  double largest = 0;
  for (int64_t i = 0; i < a.rows * a.columns; ++i) largest = std::max(largest, std::abs(a.data[i]));
  if (!std::isfinite(largest) || largest == 0 || (largest > 1e-100 && largest < 1e100)) return 1;
  const double unit = std::ldexp(1.0, std::ilogb(largest));
  for (int64_t i = 0; i < a.rows * a.columns; ++i) a.data[i] /= unit;
  return unit;
}

// Replaces `a` by its factors: R in and above the diagonal; below it the reflections, each a vector
// whose first element, 1, is left out. factors: min(rows, columns) numbers.
// The diagonal of R is real.
template <class C>
void Reflect(const MatrixAt<C>& a, C* factors) {
  const int64_t m = a.rows, n = a.columns;
  for (int64_t j = 0; j < std::min(m, n); ++j) {
    C* x = a.column(j) + j;
    const int64_t length = m - j;
    const double rest = SquaredNorm(x + 1, length - 1), alpha = RealOf(x[0]);
    if (rest == 0 && x[0] == C(alpha)) {
      factors[j] = 0;
      continue;
    }
    const double norm = std::sqrt(std::norm(x[0]) + rest), beta = alpha >= 0 ? -norm : norm;
    factors[j] = (C(beta) - x[0]) / beta;
    const C scale = C(1) / (x[0] - C(beta));
    for (int64_t i = 1; i < length; ++i) x[i] *= scale;
    x[0] = beta;
    for (int64_t k = j + 1; k < n; ++k) {
      C* y = a.column(k) + j;
      const C along = Conjugate(factors[j]) * (y[0] + Inner(x + 1, y + 1, length - 1));
      y[0] -= along;
      for (int64_t i = 1; i < length; ++i) y[i] -= along * x[i];
    }
  }
}

// Sets q, which has the rows of `a` and at least as many columns as there are reflections, to the
// first columns of their product.
template <class C>
void ReflectionsToColumns(const MatrixAt<C>& a, const C* factors, const MatrixAt<C>& q) {
  const int64_t m = a.rows;
  std::fill_n(q.data, m * q.columns, C(0));
  for (int64_t j = 0; j < q.columns; ++j) q(j, j) = 1;
  for (int64_t j = std::min(m, a.columns); j-- > 0;) {
    const C* x = a.column(j) + j;
    const int64_t length = m - j;
    for (int64_t k = j; k < q.columns; ++k) {
      C* y = q.column(k) + j;
      const C along = factors[j] * (y[0] + Inner(x + 1, y + 1, length - 1));
      y[0] -= along;
      for (int64_t i = 1; i < length; ++i) y[i] -= along * x[i];
    }
  }
}

// Turns columns p and q of `g`, and with them those of `v`, until they are orthogonal. Returns false
// if they are so already.
template <class C>
bool Turn(const MatrixAt<C>& g, const MatrixAt<C>& v, int64_t p, int64_t q) {
  C *x = g.column(p), *y = g.column(q);
  const double a = SquaredNorm(x, g.rows), b = SquaredNorm(y, g.rows);
  const C inner = Inner(x, y, g.rows);
  const double size = std::abs(inner);
  if (!(size > 2e-16 * std::sqrt(double(g.rows)) * std::sqrt(a) * std::sqrt(b)) || size == 0) return false;
  const double tau = (b - a) / (2 * size), t = (tau >= 0 ? 1 : -1) / (std::abs(tau) + std::sqrt(1 + tau * tau));
  const double c = 1 / std::sqrt(1 + t * t), s = c * t;
  const C phase = inner / size;
  const auto turn = [&](C* left, C* right, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      const C l = left[i], r = right[i] * Conjugate(phase);
      left[i] = c * l - s * r;
      right[i] = s * l + c * r;
    }
  };
  turn(x, y, g.rows);
  turn(v.column(p), v.column(q), v.rows);
  return true;
}

// The factors g = u diag(s) v' of a square matrix, by Jacobi's rotations of its columns. `g` becomes
// u. order: room for a number per column.
// Rotations stop after kSweeps, which only matrices with NaN or infinities reach.
template <class C>
void JacobiFactors(const MatrixAt<C>& g, const MatrixAt<C>& v, double* s, int64_t* order, const MatrixAt<C>& room) {
  constexpr int kSweeps = 60;
  const int64_t n = g.columns;
  std::fill_n(v.data, n * n, C(0));
  for (int64_t j = 0; j < n; ++j) v(j, j) = 1;
  bool turned = true;
  for (int sweep = 0; turned && sweep < kSweeps; ++sweep) {
    turned = false;
    for (int64_t p = 0; p < n; ++p)
      for (int64_t q = p + 1; q < n; ++q) turned |= Turn(g, v, p, q);
  }
  for (int64_t j = 0; j < n; ++j) s[j] = std::sqrt(SquaredNorm(g.column(j), g.rows));
  std::iota(order, order + n, int64_t{0});
  std::stable_sort(order, order + n, [&](int64_t i, int64_t j) { return s[i] > s[j] || (s[i] != s[i] && s[j] == s[j]); });
  const auto sort = [&](const MatrixAt<C>& m) {
    for (int64_t j = 0; j < n; ++j) std::copy_n(m.column(order[j]), m.rows, room.column(j));
    std::copy_n(room.data, m.rows * n, m.data);
  };
  sort(g);
  sort(v);
  std::stable_sort(s, s + n, [](double x, double y) { return x > y || (x != x && y == y); });
  for (int64_t j = 0; j < n && s[j] > 0; ++j)
    for (int64_t i = 0; i < g.rows; ++i) g(i, j) /= s[j];
}

// Replaces the columns of u from `rank` on by ones that are orthogonal to all others.
template <class C>
void Complete(const MatrixAt<C>& u, int64_t rank, C* factors, const MatrixAt<C>& room) {
  if (rank == u.columns) return;
  std::copy_n(u.data, u.rows * rank, room.data);
  const MatrixAt<C> known{room.data, u.rows, rank}, all{room.data + u.rows * rank, u.rows, u.columns};
  Reflect(known, factors);
  ReflectionsToColumns(known, factors, all);
  std::copy_n(all.column(rank), u.rows * (u.columns - rank), u.column(rank));
}

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_MATRIX_FACTORS_H_
