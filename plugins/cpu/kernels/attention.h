// Loops over rows of attention scores, built once per instruction set in attention_isa.cc. The
// per-set source includes this header, so it holds plain declarations only. The result of a row
// depends only on that row.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_ATTENTION_H_
#define THALWEG_PLUGINS_CPU_KERNELS_ATTENTION_H_

#include <stdint.h>

#include "kernels/common/isa.h"

namespace thalweg::cpu {

// The rows of a block; consecutive rows are `step` elements apart.
struct ScoreRows {
  int64_t rows, columns, step;
};

template <class T>
struct AttentionEntries {
  // y[c] += x[c * x_step]; x_step is 0 or 1.
  void (*add)(const T* x, int64_t x_step, T* y, int64_t n);
  // For each row r of scores: most[r] becomes the maximum of itself and of the row. s becomes exp(s
  // - most[r]). keep[r] becomes the factor that rescales earlier sums of exponentials to the new
  // maximum. sum[r] becomes the sum of all exponentials so far. A row of only -infinity becomes 0.
  void (*grow)(const ScoreRows& of, T* s, T* most, T* sum, T* keep);
  // s = exp(s - shift[r]), or 0 where shift[r] is -infinity.
  void (*shares)(const ScoreRows& of, T* s, const T* shift);
  // to = p (to - shift[r]); the rows of p and of `to` have the same step.
  void (*slopes)(const ScoreRows& of, const T* p, T* to, const T* shift);
  // y = y keep[r] + x. The rows of x and y are dense. NULL for `keep` means 1.
  void (*add_rows)(int64_t rows, int64_t columns, const T* x, const T* keep, T* y);
  // y = x factor
  void (*scale)(const T* x, T factor, T* y, int64_t n);
  // Returns the sum of x y.
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
