// Depthwise convolutions of one image, compiled once per instruction set: plain loops over channels for the compiler to vectorise.
#include "kernels/depthwise.h"

namespace thalweg::cpu::THALWEG_ISA {
namespace {

inline int64_t Min(int64_t a, int64_t b) { return a < b ? a : b; }

// Where tap t of window o reads; negative or beyond the image in the padding.
inline int64_t Read(const DepthwiseAxis& a, int64_t o, int64_t t) { return o * a.stride - a.before + t * a.dilation; }
inline bool Inside(int64_t at, int64_t size) { return at >= 0 && at < size; }

// The taps of window o that lie inside: [begin, end).
struct Taps {
  int64_t begin, end;
};
inline Taps TapsInside(const DepthwiseAxis& a, int64_t o) {
  const int64_t first = Read(a, o, 0), begin = first < 0 ? (-first + a.dilation - 1) / a.dilation : 0;
  const int64_t end = first < a.in ? Min(a.window, (a.in - 1 - first) / a.dilation + 1) : 0;
  return {begin, end};
}

// The window whose tap t reads position i, or -1.
inline int64_t WindowOver(const DepthwiseAxis& a, int64_t i, int64_t t) {
  const int64_t at = i + a.before - t * a.dilation;
  if (at < 0 || at % a.stride != 0) return -1;
  return at / a.stride < a.out ? at / a.stride : -1;
}

// sum[k] += x[k] * w[k]
template <class T>
inline void AddProducts(const T* x, const T* w, int64_t count, T* sum) {
  for (int64_t k = 0; k < count; ++k) sum[k] += x[k] * w[k];
}

template <class T>
void ForwardRow(const DepthwiseImage<T>& d, const T* image, const T* filter, int64_t y, T* result) {
  const Taps rows = TapsInside(d.h, y);
  for (int64_t x = 0; x < d.w.out; ++x) {
    const Taps columns = TapsInside(d.w, x);
    for (int64_t first = 0; first < d.channels; first += kDepthwiseBlock) {
      const int64_t count = Min(kDepthwiseBlock, d.channels - first);
      T sum[kDepthwiseBlock] = {};
      for (int64_t i = rows.begin; i < rows.end; ++i)
        for (int64_t j = columns.begin; j < columns.end; ++j) {
          const T* from = image + (Read(d.h, y, i) * d.w.in + Read(d.w, x, j)) * d.channels + first;
          AddProducts(from, filter + (i * d.w.window + j) * d.filter_step + first, count, sum);
        }
      for (int64_t k = 0; k < count; ++k) result[x * d.channels + first + k] = sum[k];
    }
  }
}

template <class T>
void InputRow(const DepthwiseImage<T>& d, const T* grad, const T* filter, int64_t i, T* result) {
  for (int64_t j = 0; j < d.w.in; ++j)
    for (int64_t first = 0; first < d.channels; first += kDepthwiseBlock) {
      const int64_t count = Min(kDepthwiseBlock, d.channels - first);
      T sum[kDepthwiseBlock] = {};
      for (int64_t ky = 0; ky < d.h.window; ++ky) {
        const int64_t y = WindowOver(d.h, i, ky);
        if (y < 0) continue;
        for (int64_t kx = 0; kx < d.w.window; ++kx) {
          const int64_t x = WindowOver(d.w, j, kx);
          if (x < 0) continue;
          AddProducts(grad + (y * d.w.out + x) * d.channels + first, filter + (ky * d.w.window + kx) * d.filter_step + first, count, sum);
        }
      }
      for (int64_t k = 0; k < count; ++k) result[j * d.channels + first + k] += sum[k];
    }
}

// Rows are summed one by one first, so that the error grows with the root of their number and not with that of positions.
template <class T>
void FilterTap(const DepthwiseImage<T>& d, const T* image, const T* grad, int64_t ky, int64_t kx, int64_t first, int64_t count, T* sums) {
  for (int64_t y = 0; y < d.h.out; ++y) {
    const int64_t i = Read(d.h, y, ky);
    if (!Inside(i, d.h.in)) continue;
    T sum[kDepthwiseBlock] = {};
    for (int64_t x = 0; x < d.w.out; ++x) {
      const int64_t j = Read(d.w, x, kx);
      if (Inside(j, d.w.in))
        AddProducts(image + (i * d.w.in + j) * d.channels + first, grad + (y * d.w.out + x) * d.channels + first, count, sum);
    }
    for (int64_t k = 0; k < count; ++k) sums[k] += sum[k];
  }
}

template <class T>
constexpr DepthwiseEntries<T> kEntries{ForwardRow<T>, InputRow<T>, FilterTap<T>};

}  // namespace

const DepthwiseTable& Depthwise() {
  static constexpr DepthwiseTable table = {kEntries<float>, kEntries<double>};
  return table;
}

}  // namespace thalweg::cpu::THALWEG_ISA
