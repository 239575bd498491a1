// Pools channels-last float images row by row. A window's rows are combined first, whole rows of
// pixels at a time, and then its columns. The number of steps is the window's rows plus columns,
// not its elements, and all steps are long loops of the instruction set.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_POOL_ROWS_H_
#define THALWEG_PLUGINS_CPU_KERNELS_POOL_ROWS_H_

#include <algorithm>
#include <cstring>

#include "kernels/elementwise.h"
#include "kernels/window.h"

namespace thalweg::cpu {

class PoolRows {
 public:
  // combine: combines two elements. nothing: the result of a window without pixels.
  PoolRows(BinaryLoop combine, float nothing, const WindowAxis& h, const WindowAxis& w, int64_t channels)
      : combine_(combine), nothing_(nothing), h_(h), w_(w), channels_(channels) {}

  int64_t room() const { return w_.in * channels_; }

  // Writes to `to` the combined elements under each window of row y. rows: room() floats of
  // temporary memory.
  void operator()(const float* image, int64_t y, float* rows, float* to) const {
    const int64_t first = y * h_.stride - h_.before, begin = std::max<int64_t>(0, first), end = std::min(h_.in, first + h_.window);
    if (begin >= end) return static_cast<void>(std::fill_n(to, w_.out * channels_, nothing_));
    const int64_t n = room();
    std::memcpy(rows, image + begin * n, size_t(n) * sizeof(float));
    for (int64_t i = begin + 1; i < end; ++i) combine_(image + i * n, 1, rows, 1, rows, n);
    // Adjacent windows that are wholly inside the image are combined all at once.
    const int64_t low = w_.stride == 1 ? std::min(w_.out, w_.before) : w_.out;
    const int64_t high = std::max(low, w_.stride == 1 ? std::min(w_.out, w_.in - w_.window + w_.before + 1) : w_.out);
    for (int64_t x = 0; x < low; ++x) Window(rows, x, to);
    if (low < high) Along(rows + (low - w_.before) * channels_, w_.window, (high - low) * channels_, to + low * channels_);
    for (int64_t x = high; x < w_.out; ++x) Window(rows, x, to);
  }

 private:
  void Window(const float* row, int64_t x, float* to) const {
    const int64_t first = x * w_.stride - w_.before, begin = std::max<int64_t>(0, first), end = std::min(w_.in, first + w_.window);
    if (begin < end)
      Along(row + begin * channels_, end - begin, channels_, to + x * channels_);
    else
      std::fill_n(to + x * channels_, channels_, nothing_);
  }
  // Combines each of n elements with the elements up to `columns` - 1 pixels further on.
  void Along(const float* row, int64_t columns, int64_t n, float* to) const {
    std::memcpy(to, row, size_t(n) * sizeof(float));
    for (int64_t j = 1; j < columns; ++j) combine_(row + j * channels_, 1, to, 1, to, n);
  }

  BinaryLoop combine_;
  float nothing_;
  const WindowAxis &h_, &w_;
  int64_t channels_;
};

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_POOL_ROWS_H_
