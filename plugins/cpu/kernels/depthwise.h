// The loops of depthwise convolutions, built once per instruction set in depthwise_isa.cc. The
// per-set source includes this header, so it holds plain declarations only.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_DEPTHWISE_H_
#define THALWEG_PLUGINS_CPU_KERNELS_DEPTHWISE_H_

#include <stdint.h>

#include "kernels/common/isa.h"

namespace thalweg::cpu {

// Tap t of window o reads position o * stride - before + t * dilation of `in`.
struct DepthwiseAxis {
  int64_t in, out, window, stride, dilation, before;
};

// One image with channels last and one result per channel. The image is [h.in, w.in, channels], the
// result is [h.out, w.out, channels], and filter element (tap, c) is at filter[tap * filter_step +
// c]. Sums run over the taps in order; those of the filter run over the positions in order.
template <class T>
struct DepthwiseImage {
  DepthwiseAxis h, w;
  int64_t channels, filter_step;
};

template <class T>
struct DepthwiseEntries {
  // Computes row y of the result.
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
