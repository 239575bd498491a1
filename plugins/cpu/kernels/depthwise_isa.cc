// Depthwise convolutions of one image, compiled once per instruction set. Many channels are
// processed in vectors of channels, whose sums stay in registers. Few channels are processed in
// runs of neighbouring elements, across pixels and channels, if windows lie side by side and wholly
// inside; the pixels at the borders are processed one by one.
#include "kernels/depthwise.h"
#include "kernels/simd.h"

namespace thalweg::cpu::THALWEG_ISA {
namespace {

inline int64_t Min(int64_t a, int64_t b) { return a < b ? a : b; }
inline int64_t Max(int64_t a, int64_t b) { return a < b ? b : a; }

// Returns the position that tap t of window o reads; in the padding it is negative or beyond the
// image.
inline int64_t Read(const DepthwiseAxis& a, int64_t o, int64_t t) { return o * a.stride - a.before + t * a.dilation; }
inline bool Inside(int64_t at, int64_t size) { return at >= 0 && at < size; }

struct Span {
  int64_t begin, end;
};

// Returns the taps of window o that lie inside.
inline Span TapsInside(const DepthwiseAxis& a, int64_t o) {
  const int64_t first = Read(a, o, 0), begin = first < 0 ? (-first + a.dilation - 1) / a.dilation : 0;
  const int64_t end = first < a.in ? Min(a.window, (a.in - 1 - first) / a.dilation + 1) : 0;
  return {begin, end};
}

// Returns those of `size` positions from which all shifts from `low` to `high` stay in [0, limit).
// May be empty.
inline Span Whole(int64_t size, int64_t low, int64_t high, int64_t limit) {
  const int64_t begin = Min(size, Max(0, -low));
  return {begin, Max(begin, Min(size, limit - high))};
}

// Returns the window whose tap t reads position i, or -1.
inline int64_t WindowOver(const DepthwiseAxis& a, int64_t i, int64_t t) {
  int64_t at = i + a.before - t * a.dilation;
  if (at < 0) return -1;
  if (a.stride > 1) {
    if (at % a.stride != 0) return -1;
    at /= a.stride;
  }
  return at < a.out ? at : -1;
}

// ---- Vectors of channels ----

// Loads the first `n` lanes, or all if n is kLanes.
template <class T>
inline Vec<T> LoadUpTo(const T* p, int64_t n) {
  return n == kLanes<T> ? Load(p) : LoadFirst(p, int(n));
}
template <class T>
inline void StoreUpTo(T* p, Vec<T> v, int64_t n) {
  n == kLanes<T> ? Store(p, v) : StoreFirst(p, v, int(n));
}

// Calls body.template operator()<V>(first, lanes of the last vector) with V vectors of channels
// from `first` on, until all `count` channels are done.
template <class T, class Body>
inline void ForChannels(int64_t count, Body&& body) {
  constexpr int64_t kL = kLanes<T>;
  int64_t first = 0;
  for (; first + 4 * kL <= count; first += 4 * kL) body.template operator()<4>(first, kL);
  for (; first + 2 * kL <= count; first += 2 * kL) body.template operator()<2>(first, kL);
  for (; first < count; first += kL) body.template operator()<1>(first, Min(kL, count - first));
}

// sum[v] += x * w; the last vector has `last` lanes.
template <int V, class T>
inline void AddProducts(const T* x, const T* w, int64_t last, Vec<T> (&sum)[V]) {
  for (int v = 0; v + 1 < V; ++v) sum[v] += Load(x + v * kLanes<T>) * Load(w + v * kLanes<T>);
  sum[V - 1] += LoadUpTo(x + (V - 1) * kLanes<T>, last) * LoadUpTo(w + (V - 1) * kLanes<T>, last);
}

template <class T>
inline void ForwardPixel(const DepthwiseImage<T>& d, const T* image, const T* filter, int64_t y, Span rows, int64_t x, T* result) {
  const Span columns = TapsInside(d.w, x);
  ForChannels<T>(d.channels, [&]<int V>(int64_t first, int64_t last) {
    Vec<T> sum[V] = {};
    for (int64_t i = rows.begin; i < rows.end; ++i) {
      const T* from = image + (Read(d.h, y, i) * d.w.in + Read(d.w, x, columns.begin)) * d.channels + first;
      const T* w = filter + (i * d.w.window + columns.begin) * d.filter_step + first;
      for (int64_t j = columns.begin; j < columns.end; ++j, from += d.w.dilation * d.channels, w += d.filter_step)
        AddProducts<V>(from, w, last, sum);
    }
    T* to = result + x * d.channels + first;
    for (int v = 0; v + 1 < V; ++v) Store(to + v * kLanes<T>, sum[v]);
    StoreUpTo(to + (V - 1) * kLanes<T>, sum[V - 1], last);
  });
}

template <class T>
inline void InputPixel(const DepthwiseImage<T>& d, const T* grad, const T* filter, int64_t i, int64_t j, T* result) {
  ForChannels<T>(d.channels, [&]<int V>(int64_t first, int64_t last) {
    Vec<T> sum[V] = {};
    for (int64_t ky = 0; ky < d.h.window; ++ky) {
      const int64_t y = WindowOver(d.h, i, ky);
      for (int64_t kx = 0; y >= 0 && kx < d.w.window; ++kx) {
        const int64_t x = WindowOver(d.w, j, kx);
        if (x < 0) continue;
        AddProducts<V>(grad + (y * d.w.out + x) * d.channels + first, filter + (ky * d.w.window + kx) * d.filter_step + first, last, sum);
      }
    }
    T* to = result + j * d.channels + first;
    for (int v = 0; v + 1 < V; ++v) Store(to + v * kLanes<T>, Load(to + v * kLanes<T>) + sum[v]);
    StoreUpTo(to + (V - 1) * kLanes<T>, LoadUpTo(to + (V - 1) * kLanes<T>, last) + sum[V - 1], last);
  });
}

// ---- Runs of elements ----

constexpr int64_t kMostInRuns = 64;

// Returns true if vectors of channels would be largely empty.
template <class T>
inline bool InRuns(const DepthwiseImage<T>& d) {
  return d.w.stride == 1 && d.channels <= kMostInRuns && d.channels % kLanes<T> != 0;
}

// A filter's channels repeated, as the factors of a vector of neighbouring elements whose first
// element may be of any channel.
template <class T>
struct Repeated {
  T at[kMostInRuns + kLanes<T>];
  Repeated(const T* w, int64_t channels) {
    for (int64_t k = 0, c = 0; k < channels + kLanes<T>; ++k, c = c + 1 < channels ? c + 1 : 0) at[k] = w[c];
  }
};

// to[k] += x[k] * w[k % channels] for k < n.
template <class T>
inline void AddRun(const T* x, const T* w, int64_t channels, int64_t n, T* to) {
  constexpr int64_t kL = kLanes<T>;
  const Repeated<T> repeated(w, channels);
  const int64_t step = kL % channels;
  int64_t k = 0, c = 0;
  for (; k + kL <= n; k += kL, c = c + step < channels ? c + step : c + step - channels)
    Store(to + k, Load(to + k) + Load(x + k) * Load(repeated.at + c));
  if (k < n) StoreFirst(to + k, LoadFirst(to + k, int(n - k)) + LoadFirst(x + k, int(n - k)) * Load(repeated.at + c), int(n - k));
}

// Computes pixels [whole.begin, whole.end) of a row of a result: sets them to 0 and calls AddRun
// for each tap of each row.
template <class T>
void ForwardRuns(const DepthwiseImage<T>& d, const T* image, const T* filter, int64_t y, Span rows, Span whole, T* result) {
  const int64_t n = (whole.end - whole.begin) * d.channels;
  T* to = result + whole.begin * d.channels;
  for (int64_t k = 0; k < n; ++k) to[k] = 0;
  for (int64_t i = rows.begin; i < rows.end; ++i)
    for (int64_t j = 0; j < d.w.window; ++j)
      AddRun(image + (Read(d.h, y, i) * d.w.in + Read(d.w, whole.begin, j)) * d.channels, filter + (i * d.w.window + j) * d.filter_step,
             d.channels, n, to);
}

template <class T>
void InputRuns(const DepthwiseImage<T>& d, const T* grad, const T* filter, int64_t i, Span whole, T* result) {
  const int64_t n = (whole.end - whole.begin) * d.channels;
  for (int64_t ky = 0; ky < d.h.window; ++ky) {
    const int64_t y = WindowOver(d.h, i, ky);
    for (int64_t kx = 0; y >= 0 && kx < d.w.window; ++kx)
      AddRun(grad + (y * d.w.out + whole.begin + d.w.before - kx * d.w.dilation) * d.channels,
             filter + (ky * d.w.window + kx) * d.filter_step, d.channels, n, result + whole.begin * d.channels);
  }
}

// Returns the products of x and y from k on, up to a vector's lanes and up to n.
template <class T>
inline Vec<T> Products(const T* x, const T* y, int64_t k, int64_t n) {
  const int64_t lanes = Min(kLanes<T>, n - k);
  return LoadUpTo(x + k, lanes) * LoadUpTo(y + k, lanes);
}

// sums[c] += the products at c, c + channels, ... of n elements; n is a multiple of the channels.
// Every vector has the same channels in the same lanes.
template <class T>
inline void SumRunOfFew(const T* x, const T* y, int64_t channels, int64_t n, T* sums) {
  constexpr int64_t kL = kLanes<T>, kSums = 4;
  Vec<T> sum[kSums] = {};
  int64_t k = 0;
  for (; k + kSums * kL <= n; k += kSums * kL)
    for (int64_t v = 0; v < kSums; ++v) sum[v] += Load(x + k + v * kL) * Load(y + k + v * kL);
  for (; k < n; k += kL) sum[0] += Products(x, y, k, n);
  const Vec<T> all = (sum[0] + sum[1]) + (sum[2] + sum[3]);
  for (int64_t i = 0, c = 0; i < kL; ++i, c = c + 1 < channels ? c + 1 : 0) sums[c] += all[i];
}
// Channels return to the same lanes after as many vectors as there are channels.
template <class T>
inline void SumRun(const T* x, const T* y, int64_t channels, int64_t n, T* sums) {
  constexpr int64_t kL = kLanes<T>;
  if (kL % channels == 0) return SumRunOfFew(x, y, channels, n, sums);
  Vec<T> sum[kMostInRuns];
  for (int64_t v = 0; v < channels; ++v) sum[v] = Vec<T>{};
  for (int64_t k = 0, v = 0; k < n; k += kL, v = v + 1 < channels ? v + 1 : 0) sum[v] += Products(x, y, k, n);
  for (int64_t i = 0, c = 0; i < channels * kL; ++i, c = c + 1 < channels ? c + 1 : 0) sums[c] += sum[i / kL][i % kL];
}

// ---- Rows ----

template <class T>
void ForwardRow(const DepthwiseImage<T>& d, const T* image, const T* filter, int64_t y, T* result) {
  const Span rows = TapsInside(d.h, y);
  Span whole = {0, 0};
  if (InRuns(d)) {
    whole = Whole(d.w.out, -d.w.before, (d.w.window - 1) * d.w.dilation - d.w.before, d.w.in);
    ForwardRuns(d, image, filter, y, rows, whole, result);
  }
  for (int64_t x = 0; x < whole.begin; ++x) ForwardPixel(d, image, filter, y, rows, x, result);
  for (int64_t x = whole.end; x < d.w.out; ++x) ForwardPixel(d, image, filter, y, rows, x, result);
}

template <class T>
void InputRow(const DepthwiseImage<T>& d, const T* grad, const T* filter, int64_t i, T* result) {
  Span whole = {0, 0};
  if (InRuns(d)) {
    whole = Whole(d.w.in, d.w.before - (d.w.window - 1) * d.w.dilation, d.w.before, d.w.out);
    InputRuns(d, grad, filter, i, whole, result);
  }
  for (int64_t j = 0; j < whole.begin; ++j) InputPixel(d, grad, filter, i, j, result);
  for (int64_t j = whole.end; j < d.w.in; ++j) InputPixel(d, grad, filter, i, j, result);
}

// Adds one row of the result to the sums of `count` channels.
template <class T>
inline void FilterTapRow(const DepthwiseImage<T>& d, const T* image, const T* grad, int64_t kx, int64_t count, T* sums) {
  const int64_t shift = Read(d.w, 0, kx);
  if (InRuns(d) && count == d.channels) {
    const Span whole = Whole(d.w.out, shift, shift, d.w.in);
    return SumRun(image + (whole.begin + shift) * d.channels, grad + whole.begin * d.channels, d.channels,
                  (whole.end - whole.begin) * d.channels, sums);
  }
  ForChannels<T>(count, [&]<int V>(int64_t first, int64_t last) {
    Vec<T> sum[V] = {};
    for (int64_t x = 0; x < d.w.out; ++x) {
      const int64_t j = x * d.w.stride + shift;
      if (Inside(j, d.w.in)) AddProducts<V>(image + j * d.channels + first, grad + x * d.channels + first, last, sum);
    }
    for (int v = 0; v < V; ++v)
      for (int64_t k = 0; k < (v + 1 < V ? kLanes<T> : last); ++k) sums[first + v * kLanes<T> + k] += sum[v][k];
  });
}

// Rows are summed one by one first, so the error grows with the root of the number of rows and not
// of positions.
template <class T>
void FilterTap(const DepthwiseImage<T>& d, const T* image, const T* grad, int64_t ky, int64_t kx, int64_t first, int64_t count, T* sums) {
  for (int64_t y = 0; y < d.h.out; ++y) {
    const int64_t i = Read(d.h, y, ky);
    if (Inside(i, d.h.in))
      FilterTapRow(d, image + i * d.w.in * d.channels + first, grad + y * d.w.out * d.channels + first, kx, count, sums);
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
