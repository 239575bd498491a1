// Loops over rows of attention's scores, built once per instruction set in attention_isa.cc. Plain declarations only: the per-set source
// includes this. What becomes of a row depends on nothing but that row.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_ATTENTION_H_
#define THALWEG_PLUGINS_CPU_KERNELS_ATTENTION_H_

#include <stdint.h>

#include "kernels/common/isa.h"

namespace thalweg::cpu {

// Rows of a block, `step` elements apart.
struct ScoreRows {
  int64_t rows, columns, step;
};

template <class T>
struct AttentionEntries {
  // y[c] += x[c * x_step], x_step being 0 or 1.
  void (*add)(const T* x, int64_t x_step, T* y, int64_t n);
  // For each row of scores: most[r] becomes the larger one of itself and the row's largest, s = exp(s - most[r]), keep[r] what makes of
  // sums of exponentials before ones after, sum[r] the sum of all so far. A row of -infinity alone becomes 0.
  void (*grow)(const ScoreRows& of, T* s, T* most, T* sum, T* keep);
  // s = exp(s - shift[r]); 0 where shift is -infinity.
  void (*shares)(const ScoreRows& of, T* s, const T* shift);
  // to = p (to - shift[r]); p and to are as far apart.
  void (*slopes)(const ScoreRows& of, const T* p, T* to, const T* shift);
  // y = y keep[r] + x, the rows of both dense; keep: NULL for 1.
  void (*add_rows)(int64_t rows, int64_t columns, const T* x, const T* keep, T* y);
  // y = x factor
  void (*scale)(const T* x, T factor, T* y, int64_t n);
  // The sum of x y.
  T (*dot)(const T* x, const T* y, int64_t n);
};

struct AttentionTable {
  AttentionEntries<float> f32;
  AttentionEntries<double> f64;
  template <class T>
  const AttentionEntries<T>& entries() const {
    if constexpr (sizeof(T) == sizeof(float))
      return f32;
    else
      return f64;
  }
};

TW_CPU_DECLARE_ISA(AttentionTable, Attention)

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_ATTENTION_H_
