// Rows of products of a sparse matrix with a dense one, built once per instruction set in
// sparse_product_isa.cc. The per-set source includes this header, so it holds plain declarations
// only.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_SPARSE_PRODUCT_H_
#define THALWEG_PLUGINS_CPU_KERNELS_SPARSE_PRODUCT_H_

#include <stdint.h>

#include "kernels/common/isa.h"

namespace thalweg::cpu {

// The stored elements of a row of the sparse matrix: element e is values[e], at column at[e]. More
// elements follow in memory, up to `reach` in all; they are needed soon, so the loop may prefetch
// for them.
template <class Stored>
struct SparseRow {
  int64_t count, reach;
  const int64_t* at;
  const Stored* values;
};

// y[j] = the sum over the row's elements, in their order, of values[e] b[at[e] * stride + j], for j < n.
template <class Stored>
using SparseProductRow = void (*)(const SparseRow<Stored>& row, const Stored* b, int64_t stride, Stored* y, int64_t n);

struct SparseProductTable {
  SparseProductRow<float> of_float;
  SparseProductRow<double> of_double;
  SparseProductRow<uint16_t> of_half, of_bfloat16;  // summed in float, rounded once
};

TW_CPU_DECLARE_ISA(SparseProductTable, SparseProduct)

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_SPARSE_PRODUCT_H_
