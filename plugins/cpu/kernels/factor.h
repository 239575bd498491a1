// The factors of matrix products. Derives from the shapes of tensors the sizes that gemm.h and
// plain_product.h need, and runs many products of one shape.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_FACTOR_H_
#define THALWEG_PLUGINS_CPU_KERNELS_FACTOR_H_

#include <algorithm>

#include "kernels/common/element.h"
#include "kernels/common/parallel.h"
#include "kernels/gemm.h"
#include "kernels/plain_product.h"
#include "kernels/slots.h"

namespace thalweg::cpu {

// One matrix of a factor: its sizes as stored, and whether the product uses it transposed.
struct Factor {
  int64_t rows, columns;
  bool transposed;
  int64_t outer() const { return transposed ? columns : rows; }
  int64_t inner() const { return transposed ? rows : columns; }
};

// Returns the matrix in the last two axes. It checks the rank again instead of trusting the shape
// rule, because the loops index by these sizes.
inline Factor FactorOf(const int64_t* dims, int32_t rank, bool transposed, const char* name) {
  if (rank < 2)
    throw tw::Error{TW_INTERNAL, std::string(name) + " must be a matrix or a batch of them, but its shape is " + tw::text(dims, rank)};
  return {dims[rank - 2], dims[rank - 1], transposed};
}
inline void CheckSizes(const Factor& a, const Factor& b, const int64_t* out, int32_t out_rank) {
  const int64_t inner_b = b.transposed ? b.columns : b.rows, n = b.transposed ? b.rows : b.columns;
  if (a.inner() != inner_b)
    throw tw::Error{TW_INTERNAL,
                    "inner dimensions differ: " + tw::text(a.inner()) + " and " + tw::text(inner_b) + "; transpose or reshape one factor"};
  if (out_rank < 2 || out[out_rank - 2] != a.outer() || out[out_rank - 1] != n)
    throw tw::Error{TW_INTERNAL, "the product has shape " + tw::text(out, out_rank) + ", the factors make [.., " + tw::text(a.outer()) +
                                     ", " + tw::text(n) + "]"};
}

template <class T>
MatrixProduct<T> ProductOf(const Factor& a, const Factor& b) {
  MatrixProduct<T> p{};
  p.m = a.outer();
  p.k = a.inner();
  p.n = b.transposed ? b.rows : b.columns;
  p.lda = a.columns;
  p.ldb = b.columns;
  p.ldc = p.n;
  p.trans_a = a.transposed;
  p.trans_b = b.transposed;
  return p;
}

template <class T>
PlainProduct<T> PlainProductOf(const Factor& a, const Factor& b, bool conjugate_a, bool conjugate_b) {
  PlainProduct<T> p{};
  p.m = a.outer();
  p.k = a.inner();
  p.n = b.transposed ? b.rows : b.columns;
  p.a_row = a.transposed ? 1 : a.columns;
  p.a_column = a.transposed ? a.columns : 1;
  p.b_row = b.transposed ? 1 : b.columns;
  p.b_column = b.transposed ? b.columns : 1;
  p.conjugate_a = conjugate_a;
  p.conjugate_b = conjugate_b;
  return p;
}

// Returns the number of multiply-adds of a product.
inline int64_t Work(int64_t m, int64_t n, int64_t k) { return int64_t(std::min(1e15, double(m) * double(n) * double(k))); }

// z[i] = x_at(i) y_at(i) for i < count; z is dense. Large products run one by one, and all threads
// share each. Small products run whole, several at a time. scratch: slots * ProductScratch(shape)
// bytes.
template <class T, class X, class Y>
void MultiplyMany(const GemmTables& tables, const tw_frame* f, const MatrixProduct<T>& shape, int64_t count, X x_at, Y y_at, T* z,
                  int slots, char* scratch) {
  auto product = [&](int64_t i) {
    MatrixProduct<T> p = shape;
    p.a = x_at(i);
    p.b = y_at(i);
    p.c = z + i * p.m * p.n;
    return p;
  };
  constexpr int64_t kTaskWork = 1 << 19;  // multiply-adds
  const int64_t work = std::max<int64_t>(1, Work(shape.m, shape.n, shape.k));
  if (count < slots && work > kTaskWork) {
    for (int64_t i = 0; i < count; ++i) Multiply(tables, f, product(i), slots, scratch);
    return;
  }
  const int64_t together = std::clamp<int64_t>(kTaskWork / work, 1, count);
  const uint64_t bytes = ProductScratch(shape);
  ForEachTask(f, (count + together - 1) / together, slots, [&](int64_t task, int slot) {
    for (int64_t i = task * together; i < std::min(count, (task + 1) * together); ++i)
      MultiplyCell(tables, product(i), 0, shape.m, 0, shape.n, scratch + uint64_t(slot) * bytes);
  });
}

// The same for integers and complex numbers, row by row.
template <class T, class X, class Y>
void MultiplyMany(const tw_frame* f, const PlainProduct<T>& shape, int64_t count, X x_at, Y y_at, T* z) {
  ParallelFor(f, count * shape.m, Work(1, shape.n, shape.k), [&](int64_t begin, int64_t end) {
    PlainProduct<T> p = shape;
    while (begin < end) {
      const int64_t i = begin / p.m, row = begin % p.m, last = std::min(p.m, row + end - begin);
      p.a = x_at(i);
      p.b = y_at(i);
      p.c = z + i * p.m * p.n;
      MultiplyRows(p, row, last);
      begin += last - row;
    }
  });
}

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_FACTOR_H_
