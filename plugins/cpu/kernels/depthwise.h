// The loops of depthwise convolutions, built once per instruction set in depthwise_isa.cc. Plain declarations only: the per-set source
// includes this.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_DEPTHWISE_H_
#define THALWEG_PLUGINS_CPU_KERNELS_DEPTHWISE_H_

#include <stdint.h>

#include "kernels/common/isa.h"

namespace thalweg::cpu {

// Tap t of window o reads position o * stride - before + t * dilation of `in`.
struct DepthwiseAxis {
  int64_t in, out, window, stride, dilation, before;
};

// One image, channels last, and one result for each channel: image [h.in, w.in, channels], result [h.out, w.out, channels], filter element
// (tap, c) at filter[tap * filter_step + c]. Sums run over the taps, and for the filter over positions, in their order.
template <class T>
struct DepthwiseImage {
  DepthwiseAxis h, w;
  int64_t channels, filter_step;
};

template <class T>
struct DepthwiseEntries {
  // Row y of the result.
  void (*forward_row)(const DepthwiseImage<T>& d, const T* image, const T* filter, int64_t y, T* result);
  // Adds row i of the image's gradient to result.
  void (*input_row)(const DepthwiseImage<T>& d, const T* grad, const T* filter, int64_t i, T* result);
  // sums[c - first] += the gradient of tap (ky, kx) for channels [first, first + count), count at most kDepthwiseBlock.
  void (*filter_tap)(const DepthwiseImage<T>& d, const T* image, const T* grad, int64_t ky, int64_t kx, int64_t first, int64_t count,
                     T* sums);
};
inline constexpr int64_t kDepthwiseBlock = 64;  // channels whose sums stay in registers or in the first-level cache

struct DepthwiseTable {
  DepthwiseEntries<float> f32;
  DepthwiseEntries<double> f64;
};
TW_CPU_DECLARE_ISA(DepthwiseTable, Depthwise)

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_DEPTHWISE_H_
