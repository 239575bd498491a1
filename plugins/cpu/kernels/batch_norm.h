// The loops of batch normalisation over strips of floats, built once per instruction set in
// batch_norm_isa.cc. The per-set source includes this header, so it holds plain declarations only.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_BATCH_NORM_H_
#define THALWEG_PLUGINS_CPU_KERNELS_BATCH_NORM_H_

#include <stdint.h>

#include "kernels/common/isa.h"

namespace thalweg::cpu {

// `rows` rows of `columns` elements; consecutive rows are `step` elements apart. Vectors have one
// entry per column.
struct NormStrip {
  int64_t step, rows, columns;
};

struct BatchNormTable {
  // sums[c] += x
  void (*sum)(const NormStrip& s, const float* x, float* sums);
  // sums[c] += (x - mean[c])^2
  void (*squares)(const NormStrip& s, const float* x, const float* mean, float* sums);
  // sums[c] += dy (x - mean[c])
  void (*products)(const NormStrip& s, const float* dy, const float* x, const float* mean, float* sums);
  // y = (x - mean[c]) scale[c] + offset[c]; y may be x
  void (*normalise)(const NormStrip& s, const float* x, const float* mean, const float* scale, const float* offset, float* y);
  // dx = (dy - shift[c] - (x - mean[c]) slope[c]) scale[c]; dx may be dy or x
  void (*gradient)(const NormStrip& s, const float* dy, const float* x, const float* mean, const float* shift, const float* slope,
                   const float* scale, float* dx);
};
TW_CPU_DECLARE_ISA(BatchNormTable, BatchNorm)

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_BATCH_NORM_H_
