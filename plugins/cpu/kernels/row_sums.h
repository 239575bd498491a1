// Code shared by softmax and the losses over it: their function tables, and the logarithm of a
// row's sum of exponentials.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_ROW_SUMS_H_
#define THALWEG_PLUGINS_CPU_KERNELS_ROW_SUMS_H_

#include <algorithm>

#include "kernels/common/types.h"
#include "kernels/elementwise.h"
#include "kernels/vector.h"

namespace thalweg::cpu {

// The number of elements that all passes process before the next ones: 8 kB.
inline constexpr int64_t kRowBlock = 2048;

struct RowTables {
  const VectorTable* vector;
  const Elementwise* elementwise;
};
inline RowTables RowTablesFor(const tw_host* host) {
  const Isa isa = DetectIsa(host);
  return {&TW_CPU_FOR_ISA(isa, Vectors), &TW_CPU_FOR_ISA(isa, ElementwiseTable)};
}

// sums[r] = log(sum over c of exp(x[r, c])). REQUIRES: rows * columns <= kRowBlock, or rows == 1.
inline void LogSumExpRows(const RowTables& t, const float* x, float* sums, int64_t rows, int64_t columns) {
  float exps[kRowBlock];
  if (columns <= kRowBlock) {
    t.elementwise->unary_float.exp.loop(x, exps, rows * columns);
    t.vector->row_sums(exps, sums, rows, columns);
  } else {
    sums[0] = 0;
    for (int64_t c = 0; c < columns; c += kRowBlock) {
      const int64_t n = std::min(kRowBlock, columns - c);
      t.elementwise->unary_float.exp.loop(x + c, exps, n);
      sums[0] += t.vector->sum(exps, n);
    }
  }
  t.elementwise->unary_float.log.loop(sums, sums, rows);
}

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_ROW_SUMS_H_
