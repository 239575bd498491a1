// Batches of matrices [..., rows, columns] for linear algebra. Decompositions run in double or
// complex128, whatever the element type, on copies whose columns are contiguous; so their code is
// compiled for two types only, and results are rounded once.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_MATRICES_H_
#define THALWEG_PLUGINS_CPU_KERNELS_MATRICES_H_

#include <string>

#include "kernels/common/element.h"
#include "kernels/common/parallel.h"
#include "kernels/common/temp.h"
#include "kernels/common/types.h"

namespace thalweg::cpu {

inline double Conjugate(double x) { return x; }
inline complex128 Conjugate(complex128 x) { return std::conj(x); }
inline double RealOf(double x) { return x; }
inline double RealOf(complex128 x) { return x.real(); }
inline bool IsComplexType(uint32_t dtype) { return dtype == TW_COMPLEX64 || dtype == TW_COMPLEX128; }

// Reads or writes element i of a tensor of real or complex floating-point numbers. C: double, or
// complex128.
inline void Read(const tw_view* v, uint64_t i, double* x) {
  const char* p = Bytes(v);
  switch (v->dtype) {
    case TW_DOUBLE: *x = reinterpret_cast<const double*>(p)[i]; return;
    case TW_FLOAT: *x = double(reinterpret_cast<const float*>(p)[i]); return;
    case TW_HALF: *x = double(float(reinterpret_cast<const half*>(p)[i])); return;
    default: *x = double(float(reinterpret_cast<const bfloat16*>(p)[i])); return;
  }
}
inline void Read(const tw_view* v, uint64_t i, complex128* x) {
  const char* p = Bytes(v);
  *x = v->dtype == TW_COMPLEX128 ? reinterpret_cast<const complex128*>(p)[i] : complex128(reinterpret_cast<const complex64*>(p)[i]);
}
inline void Write(const tw_view* v, uint64_t i, double x) {
  char* p = Bytes(v);
  switch (v->dtype) {
    case TW_DOUBLE: reinterpret_cast<double*>(p)[i] = x; return;
    case TW_FLOAT: reinterpret_cast<float*>(p)[i] = float(x); return;
    case TW_HALF: reinterpret_cast<half*>(p)[i] = half(float(x)); return;
    case TW_BFLOAT16: reinterpret_cast<bfloat16*>(p)[i] = bfloat16(float(x)); return;
    case TW_COMPLEX64: reinterpret_cast<complex64*>(p)[i] = complex64(float(x)); return;
    default: reinterpret_cast<complex128*>(p)[i] = x; return;
  }
}
inline void Write(const tw_view* v, uint64_t i, complex128 x) {
  char* p = Bytes(v);
  if (v->dtype == TW_COMPLEX128)
    reinterpret_cast<complex128*>(p)[i] = x;
  else
    reinterpret_cast<complex64*>(p)[i] = complex64(float(x.real()), float(x.imag()));
}

// A matrix in memory of the caller's; element (i, j) is at data[i + j * rows].
template <class C>
struct MatrixAt {
  C* data;
  int64_t rows, columns;
  C& operator()(int64_t i, int64_t j) const { return data[i + j * rows]; }
  C* column(int64_t j) const { return data + j * rows; }
};

// The last two axes of a batch of matrices.
struct MatrixSizes {
  int64_t rows, columns;
  explicit MatrixSizes(const tw_view* v) {
    if (v->rank < 2) Invalid("a tensor " + DimsText(v) + " holds no matrices; they need two axes");
    rows = v->dims[v->rank - 2];
    columns = v->dims[v->rank - 1];
  }
  int64_t size() const { return rows * columns; }
};

// Reads matrix number `at` of a batch; adjoint: its conjugate transpose.
template <class C>
void Load(const tw_view* v, int64_t at, const MatrixAt<C>& to, bool adjoint = false) {
  uint64_t i = uint64_t(at) * uint64_t(to.rows * to.columns);
  if (adjoint) {
    for (int64_t column = 0; column < to.columns; ++column)
      for (int64_t row = 0; row < to.rows; ++row, ++i) {
        Read(v, i, &to(row, column));
        to(row, column) = Conjugate(to(row, column));
      }
    return;
  }
  for (int64_t row = 0; row < to.rows; ++row)
    for (int64_t column = 0; column < to.columns; ++column, ++i) Read(v, i, &to(row, column));
}
template <class C>
void Store(const tw_view* v, int64_t at, const MatrixAt<C>& from) {
  uint64_t i = uint64_t(at) * uint64_t(from.rows * from.columns);
  for (int64_t row = 0; row < from.rows; ++row)
    for (int64_t column = 0; column < from.columns; ++column, ++i) Write(v, i, from(row, column));
}

// Calls body(C{}) with the type to compute in.
template <class F>
void InField(uint32_t dtype, F&& body) {
  if (IsComplexType(dtype))
    body(complex128{});
  else
    body(double{});
}

// Calls body(index, room) for each of `count` matrices in parallel; room: `elements` numbers of type
// C. cost: of one matrix.
template <class C, class F>
void ForMatrices(const tw_frame* f, int64_t count, int64_t cost, uint64_t elements, F&& body) {
  ParallelFor(f, count, cost, [&](int64_t begin, int64_t end) {
    const TempArray<C> room(f, elements);
    for (int64_t k = begin; k < end; ++k) body(k, room.get());
  });
}

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_MATRICES_H_
