// The innermost products of dense matrices, built once per instruction set (gemm_isa.cc) and reached through a table. gemm.h cuts products
// of any size into these; convolutions call them on tiles that they have gathered.
// Everything here is plain data: the per-set sources may not share inline functions with the rest of the plugin.
// Each element of a block's c is summed over k in order, one (fused where the set has it) multiply-add at a time, whatever the tile that it
// is in: how m and n are cut never changes a bit. How k is cut does.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_GEMM_BLOCK_H_
#define THALWEG_PLUGINS_CPU_KERNELS_GEMM_BLOCK_H_

#include <stdint.h>

#include "kernels/common/isa.h"

namespace thalweg::cpu {

// How much of k callers take at a time: a panel of b of that depth stays in the first-level cache.
inline constexpr int64_t kGemmDepth = 384;

// c[m, n] = a[m, k] b[k, n], or term[m, n] + a[m, k] b[k, n].
template <class T>
struct GemmBlock {
  int64_t m, n, k;
  const T* a;  // element (i, p) at a[i * a_row + p * a_col]; one of the two should be 1
  int64_t a_row, a_col;
  const T* b;  // element (p, j) at b[p * ldb + j]; or, if packed, what `pack` made of it
  int64_t ldb;
  T* c;  // row-major
  int64_t ldc;
  const T* term;  // what the product is added to, rows ldc apart; may be c; or NULL
  uint32_t packed;
};

template <class T>
struct GemmEntries {
  void (*block)(const GemmBlock<T>& g);
  // Copies b[k, n] into panels as wide as tiles are, each of them k rows that follow one another; element (p, j) is at b[p * ldb + j], or
  // at b[j * ldb + p] if turned. Fills k * n elements, n rounded up to whole panels. Pays where the rows of b lie far apart and m is not
  // small.
  void (*pack)(int64_t k, int64_t n, const T* b, int64_t ldb, bool turned, T* to);
  // y[n] = x[k] b[k, n], b row-major: reads b once, in order.
  void (*vector_matrix)(int64_t k, int64_t n, const T* x, const T* b, int64_t ldb, T* y);
  // y[m] = a[m, k] x[k], a row-major. Sums over k in lanes, then across them in a fixed order.
  void (*matrix_vector)(int64_t m, int64_t k, const T* a, int64_t lda, const T* x, T* y);
  // c[m, n] = a[m, k] b[n, k] transposed, or with a term: for few rows of a, reads b once, in order. Sums as matrix_vector, in fewer lanes.
  void (*few_rows)(const GemmBlock<T>& g);
  int64_t rows;     // height of the tallest tile
  int64_t columns;  // width of a panel
};

struct GemmTable {
  GemmEntries<float> f32;
  GemmEntries<double> f64;
};

TW_CPU_DECLARE_ISA(GemmTable, Gemm)

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_GEMM_BLOCK_H_
