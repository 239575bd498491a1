// Convolution as matrix products over gathered tiles, for both image formats. A forward convolution
// gathers the input under the filter's taps. The gradient of the input does the same with the
// output's gradient and reversed taps, once per stride phase. The gradient of the filter multiplies
// the gathered tiles with the output's gradient. All three share this code.
// Tiles are gathered into a worker's scratch and multiplied at once, so at most one tile per worker
// is ever unrolled. No two tasks write the same element and no sum is split by load, so results
// have the same bits for any number of threads.
// same element and no sum is split by load, so results have the same bits for any number of threads.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_CONV_GATHER_H_
#define THALWEG_PLUGINS_CPU_KERNELS_CONV_GATHER_H_

#include <cstdint>

#include "kernels/gemm.h"
#include "kernels/window.h"

namespace thalweg::cpu {

// Along one axis, tap t of grid point g reads source position g * step + first + t * tap_step.
// Positions outside [0, source) read as zeros.
struct GatherAxis {
  int64_t source, grid;
  int64_t step;
  int64_t taps, first, tap_step;
};

// Returns the axis of a forward convolution.
inline GatherAxis ForwardAxis(const WindowAxis& a) { return {a.in, a.out, a.stride, a.window, -a.before, a.dilation}; }

// The gathered values: for each image and grid point, the channels of its taps in the order (tap of
// h, tap of w, channel). The rows of the weights have the same order.
template <class T>
struct Gather {
  bool channels_first;
  int64_t batch;
  GatherAxis h, w;
  const T* source;
  int64_t source_channels;          // of the whole tensor
  int64_t first_channel, channels;  // the slice that is read
  int64_t depth() const { return h.taps * w.taps * channels; }
  int64_t points() const { return h.grid * w.grid; }  // of one image
};

// The destination of results: grid point (y, x) goes to pixel (first_h + y * step_h, first_w + x *
// step_w).
template <class T>
struct Scatter {
  T* dest;
  int64_t height, width, channels;  // of the whole tensor
  int64_t first_h, step_h, first_w, step_w;
  int64_t first_channel;
};

// dest[point, o] = sum over d of gathered[point, d] * weights[d * weights_row + o], o < out. `scratch`: GatherScratch bytes.
template <class T>
struct GatherProduct {
  Gather<T> from;
  const Wide<T>* weights;
  int64_t weights_row, out;
  Scatter<T> to;
};
template <class T>
uint64_t GatherScratch(const GatherProduct<T>& p, int slots);
template <class T>
void RunGatherProduct(const GemmTables& t, const tw_frame* f, const GatherProduct<T>& p, int slots, char* scratch);

// weights[d * weights_row + o] = sum over points of gathered[point, d] * grad[point, o]. grad has
// the image format of `from` and the height and width of its grid. Of its grad_channels channels,
// [first_grad_channel, + out) are read. Sums run over fixed chunks of points, and the chunks are
// then added up in order. `scratch` holds WeightGradientScratch bytes, for the scratch of `slots`
// workers and for the chunks.
template <class T>
struct WeightGradient {
  Gather<T> from;
  const T* grad;
  int64_t grad_channels, first_grad_channel, out;
  T* weights;
  int64_t weights_row;
};
template <class T>
uint64_t WeightGradientScratch(const WeightGradient<T>& p, int slots);
template <class T>
void RunWeightGradient(const GemmTables& t, const tw_frame* f, const WeightGradient<T>& p, int slots, char* scratch);

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_CONV_GATHER_H_
