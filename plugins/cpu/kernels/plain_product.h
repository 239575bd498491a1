// Matrix products of integers and complex numbers, without tiles; rows of c run in parallel.
// Integers wrap around.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_PLAIN_PRODUCT_H_
#define THALWEG_PLUGINS_CPU_KERNELS_PLAIN_PRODUCT_H_

#include <algorithm>
#include <type_traits>

#include "kernels/common/types.h"

namespace thalweg::cpu {

// c[m, n] = a[m, k] b[k, n], c dense. `row` and `column` are the strides of a factor's elements.
template <class T>
struct PlainProduct {
  int64_t m, n, k;
  const T* a;
  int64_t a_row, a_column;
  const T* b;
  int64_t b_row, b_column;
  T* c;
  bool conjugate_a, conjugate_b;
};

// Returns sum + x * y. Complex numbers use the textbook formula; C's rules for infinite ones would
// cost a call each.
template <class T>
T MultiplyAdd(T sum, T x, T y) {
  if constexpr (kIsComplex<T>) {
    return {sum.real() + (x.real() * y.real() - x.imag() * y.imag()), sum.imag() + (x.real() * y.imag() + x.imag() * y.real())};
  } else {
    return T(uint64_t(sum) + uint64_t(x) * uint64_t(y));
  }
}

template <class T>
T ConjugateIf(bool wanted, T x) {
  if constexpr (kIsComplex<T>)
    return wanted ? T(x.real(), -x.imag()) : x;
  else
    return x;
}

template <class T>
void MultiplyRows(const PlainProduct<T>& p, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    T* c = p.c + i * p.n;
    std::fill(c, c + p.n, T(0));
    for (int64_t q = 0; q < p.k; ++q) {
      const T x = ConjugateIf(p.conjugate_a, p.a[i * p.a_row + q * p.a_column]);
      const T* b = p.b + q * p.b_row;
      for (int64_t j = 0; j < p.n; ++j) c[j] = MultiplyAdd(c[j], x, ConjugateIf(p.conjugate_b, b[j * p.b_column]));
    }
  }
}

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_PLAIN_PRODUCT_H_
