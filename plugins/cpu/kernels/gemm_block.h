// The innermost products of dense matrices, built once per instruction set (gemm_isa.cc) and
// reached through a table. gemm.h cuts products of any size into blocks; convolutions call the
// blocks on gathered tiles.
// This header holds plain data only: the per-set sources must not share inline functions with the
// rest of the plugin.
// Each element of a block's c is summed over k in order, one multiply-add at a time (fused if the
// set has it), in every tile. How m and n are cut therefore never changes a bit; how k is cut does.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_GEMM_BLOCK_H_
#define THALWEG_PLUGINS_CPU_KERNELS_GEMM_BLOCK_H_

#include <stdint.h>

#include "kernels/common/isa.h"

namespace thalweg::cpu {

// The depth of k that callers take at a time. A panel of b of that depth stays in the first-level
// cache.
inline constexpr int64_t kGemmDepth = 384;

// c[m, n] = a[m, k] b[k, n], or term[m, n] + a[m, k] b[k, n].
template <class T>
struct GemmBlock {
  int64_t m, n, k;
  const T* a;  // element (i, p) at a[i * a_row + p * a_col]; one of the two should be 1
  int64_t a_row, a_col;
  const T* b;  // element (p, j) at b[p * ldb + j]; or, if packed, the output of `pack`
  int64_t ldb;
  T* c;  // row-major
  int64_t ldc;
  const T* term;  // the product is added to this; rows ldc apart; may be c or NULL
  uint32_t packed;
};

template <class T>
struct GemmEntries {
  void (*block)(const GemmBlock<T>& g);
  // Copies b[k, n] into panels as wide as a tile. Each panel is k consecutive rows. Element (p, j)
  // is at b[p * ldb + j], or at b[j * ldb + p] if turned. Fills k * n elements, with n rounded up
  // to whole panels. Packing pays if the rows of b are far apart and m is not small.
  void (*pack)(int64_t k, int64_t n, const T* b, int64_t ldb, bool turned, T* to);
  // y[n] = x[k] b[k, n], b row-major. Reads b once, in order.
  void (*vector_matrix)(int64_t k, int64_t n, const T* x, const T* b, int64_t ldb, T* y);
  // y[m] = a[m, k] x[k], a row-major. Sums over k in lanes, then across them in a fixed order.
  void (*matrix_vector)(int64_t m, int64_t k, const T* a, int64_t lda, const T* x, T* y);
  // c[m, n] = a[m, k] b[n, k] transposed, or with a term. For few rows of a; reads b once, in
  // order. Sums as matrix_vector does, in fewer lanes.
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
