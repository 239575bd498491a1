// MaxPool, AvgPool and their gradients, NHWC and NCHW. A window ignores elements outside the image.
// Among equal largest elements the first in row-major order counts; NaN counts as larger than
// anything. One task adds all gradients of an element in window order, so results have the same
// bits for any number of threads.
#include <algorithm>
#include <limits>
#include <memory>

#include "kernels/common/arithmetic.h"
#include "kernels/common/parallel.h"
#include "kernels/common/temp.h"
#include "kernels/common/types.h"
#include "kernels/pool_rows.h"
#include "kernels/register.h"
#include "kernels/slots.h"
#include "kernels/window.h"

namespace thalweg::cpu {
namespace {

// The channels that one task takes at a time: whole vectors if the channels are last, a plane if
// they are first.
constexpr int64_t kChannels = 64;

struct Images {
  ImageFormat format;
  int64_t batch, channels;
  WindowAxis h, w;
  int64_t in_pixels() const { return h.in * w.in; }
  int64_t out_pixels() const { return h.out * w.out; }
  int64_t together() const { return format.channels_first ? 1 : std::min(kChannels, channels); }
  int64_t slices() const { return channels == 0 ? 0 : (channels + together() - 1) / together(); }  // of the channels of one image
};

Images ImagesOf(const WindowAttrs& attrs, const tw_shape& in, const tw_shape& out) {
  if (in.rank != 4 || out.rank != 4) Invalid("input " + tw::text(in) + " and output " + tw::text(out) + " must have rank 4");
  const ImageFormat& f = attrs.format;
  Images g{f, in.dims[0], in.dims[f.channel()], attrs.Along(0, in.dims[f.height()], attrs.window[0]),
           attrs.Along(1, in.dims[f.width()], attrs.window[1])};
  if (out.dims[0] != g.batch || out.dims[f.channel()] != g.channels || out.dims[f.height()] != g.h.out || out.dims[f.width()] != g.w.out)
    Invalid("windows over " + tw::text(in) + " make a height of " + tw::text(g.h.out) + " and a width of " + tw::text(g.w.out) +
            ", but the pooled tensor is " + tw::text(out));
  return g;
}

template <class V>
tw_shape ShapeOf(const V& v) {
  return {v.dims(), v.rank(), 0};
}
void CheckSame(const tw_view* a, const tw_view* b, const char* what) {
  if (!std::equal(a->dims, a->dims + a->rank, b->dims, b->dims + b->rank))
    Invalid(std::string(what) + " must have the same shape, but they are " + DimsText(a) + " and " + DimsText(b));
}

// `count` channels of one image, [pixel, channel]: element (p, c) is at data[p * pixel + c].
template <class T>
struct Slice {
  T* data;
  int64_t pixel, count;
};
template <class T>
Slice<T> SliceOf(const Images& g, T* data, int64_t pixels, int64_t image, int64_t slice) {
  if (g.format.channels_first) return {data + (image * g.channels + slice) * pixels, 1, 1};
  const int64_t first = slice * kChannels;
  return {data + image * pixels * g.channels + first, g.channels, std::min(kChannels, g.channels - first)};
}

// The range [begin, end) of the image under window o.
struct Span {
  int64_t begin, end;
};
Span Under(const WindowAxis& a, int64_t o) {
  const int64_t first = o * a.stride - a.before;
  return {std::max<int64_t>(0, first), std::min(a.in, first + a.window)};
}
// Returns the windows that cover element i.
Span Over(const WindowAxis& a, int64_t i) {
  const int64_t at = i + a.before;
  return {at < a.window ? 0 : (at - a.window) / a.stride + 1, std::min(a.out, at / a.stride + 1)};
}

// Returns true if x beats `best`. A NaN beats any number, and nothing beats a NaN that came first.
template <class T>
bool Beats(T x, T best) {
  if constexpr (std::is_floating_point_v<T>)
    return x > best || (x != x && best == best);
  else
    return x > best;
}
template <class T>
constexpr T Lowest() {
  if constexpr (std::is_floating_point_v<T>)
    return -std::numeric_limits<T>::infinity();
  else
    return std::numeric_limits<T>::lowest();
}

// Finds the largest elements under window (y, x) and, unless `where` is NULL, their pixels; -1 for
// a window without pixels.
template <class T>
void LargestUnder(const Images& g, const Slice<const T>& in, int64_t y, int64_t x, Wide<T>* best, int64_t* where) {
  std::fill(best, best + in.count, Lowest<Wide<T>>());
  if (where) std::fill(where, where + in.count, int64_t{-1});
  const Span rows = Under(g.h, y), columns = Under(g.w, x);
  for (int64_t i = rows.begin; i < rows.end; ++i)
    for (int64_t j = columns.begin; j < columns.end; ++j) {
      const int64_t pixel = i * g.w.in + j;
      const T* from = in.data + pixel * in.pixel;
      if (!where) {
        for (int64_t c = 0; c < in.count; ++c) best[c] = Beats(Wide<T>(from[c]), best[c]) ? Wide<T>(from[c]) : best[c];
        continue;
      }
      for (int64_t c = 0; c < in.count; ++c) {
        const Wide<T> v = Wide<T>(from[c]);
        const bool beats = Beats(v, best[c]) || where[c] < 0;
        best[c] = beats ? v : best[c];
        where[c] = beats ? pixel : where[c];
      }
    }
}

// Calls body(image, slice, y) for each row of windows of each slice, in parallel. No two calls
// share an output row.
template <class F>
void ForRows(const tw_frame* f, const Images& g, F&& body) {
  if (g.w.out == 0) return;  // the number of rows may then be anything
  const int64_t slices = g.slices(), cost = Cost(g.w.out, std::min(g.h.window, g.h.in), std::min(g.w.window, g.w.in), g.together());
  ParallelFor(f, g.batch * slices * g.h.out, cost, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) body(i / g.h.out / slices, i / g.h.out % slices, i % g.h.out);
  });
}

const BinaryKernels* FloatLoops(const tw_host* host) { return &TW_CPU_FOR_ISA(DetectIsa(host), ElementwiseTable).binary_float; }

// Returns true if pooling whole rows pays: for float images with the channels last, if no pixels
// are skipped and the result is not empty.
template <class T>
bool TakesRows(const Images& g) {
  return std::is_same_v<T, float> && !g.format.channels_first && g.w.stride <= g.w.window && g.w.out * g.channels > 0;
}
// Calls finish(y, to) for each row `to` of results of image row y.
template <class F>
void PoolWholeRows(const tw_frame* f, const Images& g, const PoolRows& pool, const float* in, float* out, F&& finish) {
  const int64_t row = g.w.out * g.channels, image = g.in_pixels() * g.channels;
  const int64_t cost = Cost(pool.room() + row, std::min(g.h.window, g.h.in) + std::min(g.w.window, g.w.in));
  ParallelFor(f, g.batch * g.h.out, cost, [&](int64_t begin, int64_t end) {
    const TempArray<float> room(f, size_t(pool.room()));
    for (int64_t i = begin; i < end; ++i) {
      pool(in + i / g.h.out * image, i % g.h.out, room.get(), out + i * row);
      finish(i % g.h.out, out + i * row);
    }
  });
}

template <class T>
class MaxPool {
 public:
  explicit MaxPool(const tw::Node& n) : attrs_(n), loops_(FloatLoops(n.host())) {}

  void operator()(tw::Frame frame, tw::In<T> input, tw::Out<T> output) const { Run(frame, attrs_, input, output); }

 protected:
  void Run(tw::Frame frame, const WindowAttrs& attrs, tw::In<T> input, tw::Out<T> output) const {
    const Images g = ImagesOf(attrs, ShapeOf(input), ShapeOf(output));
    if constexpr (std::is_same_v<T, float>) {
      const PoolRows pool(loops_->maximum.loop, Lowest<float>(), g.h, g.w, g.channels);
      if (TakesRows<T>(g)) return PoolWholeRows(frame.f, g, pool, input.data(), output.data(), [](int64_t, float*) {});
    }
    ForRows(frame.f, g, [&](int64_t image, int64_t slice, int64_t y) {
      const Slice<const T> in = SliceOf(g, input.data(), g.in_pixels(), image, slice);
      const Slice<T> out = SliceOf(g, output.data(), g.out_pixels(), image, slice);
      Wide<T> best[kChannels];
      for (int64_t x = 0; x < g.w.out; ++x) {
        LargestUnder(g, in, y, x, best, nullptr);
        T* to = out.data + (y * g.w.out + x) * out.pixel;
        for (int64_t c = 0; c < out.count; ++c) to[c] = T(best[c]);
      }
    });
  }

  WindowAttrs attrs_;
  const BinaryKernels* loops_;
};

template <class T>
class MaxPoolV2 : MaxPool<T> {
 public:
  explicit MaxPoolV2(const tw::Node& n) : MaxPool<T>(n) {}

  void operator()(tw::Frame frame, tw::In<T> input, tw::In<int32_t> ksize, tw::In<int32_t> strides, tw::Out<T> output) const {
    this->Run(frame, this->attrs_.With(ksize.v, strides.v), input, output);
  }
};

// Adds each window's gradient to its largest element. Half and bfloat16 are summed in float, in
// scratch.
template <class T>
class MaxPoolGrad {
 public:
  explicit MaxPoolGrad(const tw::Node& n) : attrs_(n), slots_(WorkerSlots()) {}

  uint64_t scratch(const tw::Node& n) const { return Bytes(ImagesOf(attrs_, n.node->shapes[0], n.node->shapes[1])) * uint64_t(slots_); }

  void operator()(tw::Frame frame, tw::In<T> input, tw::In<T> pooled, tw::In<T> grad, tw::Out<T> output) const {
    Run(frame, attrs_, input, pooled, grad, output);
  }

 protected:
  WindowAttrs attrs_;

  void Run(tw::Frame frame, const WindowAttrs& attrs, tw::In<T> input, tw::In<T> pooled, tw::In<T> grad, tw::Out<T> output) const {
    const Images g = ImagesOf(attrs, ShapeOf(input), ShapeOf(pooled));
    CheckSame(pooled.v, grad.v, "orig_output and grad");
    CheckSame(input.v, output.v(), "orig_input and output");
    if (output.size() == 0) return;
    Workspace work(frame.f, Bytes(g) * uint64_t(slots_));
    const int64_t slices = g.slices();
    ForEachTask(frame.f, g.batch * slices, slots_, [&](int64_t task, int slot) {
      const int64_t image = task / slices, slice = task % slices;
      const Slice<const T> in = SliceOf(g, input.data(), g.in_pixels(), image, slice);
      const Slice<const T> dy = SliceOf(g, grad.data(), g.out_pixels(), image, slice);
      const Slice<T> dx = SliceOf(g, output.data(), g.in_pixels(), image, slice);
      if constexpr (kIsSmallFloat<T>) {
        const Slice<float> sums{reinterpret_cast<float*>(work.data() + Bytes(g) * uint64_t(slot)), dx.count, dx.count};
        Distribute(g, in, dy, sums);
        for (int64_t p = 0; p < g.in_pixels(); ++p)
          for (int64_t c = 0; c < dx.count; ++c) dx.data[p * dx.pixel + c] = T(sums.data[p * sums.pixel + c]);
      } else {
        Distribute(g, in, dy, dx);
      }
    });
  }

 private:
  static uint64_t Bytes(const Images& g) {
    return kIsSmallFloat<T> ? RoundUp64(uint64_t(g.in_pixels() * g.together()) * sizeof(float)) : 0;
  }

  static void Distribute(const Images& g, const Slice<const T>& in, const Slice<const T>& dy, const Slice<Wide<T>>& dx) {
    for (int64_t p = 0; p < g.in_pixels(); ++p) std::fill(dx.data + p * dx.pixel, dx.data + p * dx.pixel + dx.count, Wide<T>(0));
    Wide<T> best[kChannels];
    int64_t where[kChannels];
    for (int64_t y = 0; y < g.h.out; ++y)
      for (int64_t x = 0; x < g.w.out; ++x) {
        LargestUnder(g, in, y, x, best, where);
        const T* from = dy.data + (y * g.w.out + x) * dy.pixel;
        for (int64_t c = 0; c < dx.count; ++c)
          if (where[c] >= 0) dx.data[where[c] * dx.pixel + c] = Plus(dx.data[where[c] * dx.pixel + c], Wide<T>(from[c]));
      }
  }

  int slots_;
};

// The gradient of MaxPoolGrad with respect to its grad: the values at the positions of the largest
// elements.
template <class T>
class MaxPoolGradGrad {
 public:
  explicit MaxPoolGradGrad(const tw::Node& n) : attrs_(n) {}

  void operator()(tw::Frame frame, tw::In<T> input, tw::In<T> pooled, tw::In<T> grad, tw::Out<T> output) const {
    Run(frame, attrs_, input, pooled, grad, output);
  }

 protected:
  void Run(tw::Frame frame, const WindowAttrs& attrs, tw::In<T> input, tw::In<T> pooled, tw::In<T> grad, tw::Out<T> output) const {
    const Images g = ImagesOf(attrs, ShapeOf(input), ShapeOf(pooled));
    CheckSame(input.v, grad.v, "orig_input and grad");
    CheckSame(pooled.v, output.v(), "orig_output and output");
    ForRows(frame.f, g, [&](int64_t image, int64_t slice, int64_t y) {
      const Slice<const T> in = SliceOf(g, input.data(), g.in_pixels(), image, slice);
      const Slice<const T> from = SliceOf(g, grad.data(), g.in_pixels(), image, slice);
      const Slice<T> out = SliceOf(g, output.data(), g.out_pixels(), image, slice);
      Wide<T> best[kChannels];
      int64_t where[kChannels];
      for (int64_t x = 0; x < g.w.out; ++x) {
        LargestUnder(g, in, y, x, best, where);
        T* to = out.data + (y * g.w.out + x) * out.pixel;
        for (int64_t c = 0; c < out.count; ++c) to[c] = where[c] < 0 ? T(0) : from.data[where[c] * from.pixel + c];
      }
    });
  }

  WindowAttrs attrs_;
};

// The gradients that take ksize and strides as inputs.
template <class T, template <class> class Gradient>
class WithSizes : Gradient<T> {
 public:
  explicit WithSizes(const tw::Node& n) : Gradient<T>(n) {}

  void operator()(tw::Frame frame, tw::In<T> input, tw::In<T> pooled, tw::In<T> grad, tw::In<int32_t> ksize, tw::In<int32_t> strides,
                  tw::Out<T> output) const {
    this->Run(frame, this->attrs_.With(ksize.v, strides.v), input, pooled, grad, output);
  }
};
template <class T>
using MaxPoolGradV2 = WithSizes<T, MaxPoolGrad>;
template <class T>
using MaxPoolGradGradV2 = WithSizes<T, MaxPoolGradGrad>;

template <class T>
class AvgPool {
 public:
  explicit AvgPool(const tw::Node& n) : attrs_(n), loops_(FloatLoops(n.host())) {}

  void operator()(tw::Frame frame, tw::In<T> value, tw::Out<T> output) const {
    const Images g = ImagesOf(attrs_, ShapeOf(value), ShapeOf(output));
    if constexpr (std::is_same_v<T, float>) {
      const PoolRows pool(loops_->add.loop, 0, g.h, g.w, g.channels);
      if (TakesRows<T>(g))
        return PoolWholeRows(frame.f, g, pool, value.data(), output.data(), [&](int64_t y, float* sums) { DivideRow(g, y, sums); });
    }
    ForRows(frame.f, g, [&](int64_t image, int64_t slice, int64_t y) {
      const Slice<const T> in = SliceOf(g, value.data(), g.in_pixels(), image, slice);
      const Slice<T> out = SliceOf(g, output.data(), g.out_pixels(), image, slice);
      for (int64_t x = 0; x < g.w.out; ++x) Average(g, in, y, x, out.data + (y * g.w.out + x) * out.pixel);
    });
  }

 private:
  static void Average(const Images& g, const Slice<const T>& in, int64_t y, int64_t x, T* to) {
    const Span rows = Under(g.h, y), columns = Under(g.w, x);
    Wide<T> sum[kChannels];
    std::fill_n(sum, in.count, Wide<T>(0));
    for (int64_t i = rows.begin; i < rows.end; ++i)
      for (int64_t j = columns.begin; j < columns.end; ++j) {
        const T* from = in.data + (i * g.w.in + j) * in.pixel;
        for (int64_t c = 0; c < in.count; ++c) sum[c] += Wide<T>(from[c]);
      }
    const Wide<T> count = Wide<T>((rows.end - rows.begin) * (columns.end - columns.begin));
    for (int64_t c = 0; c < in.count; ++c) to[c] = T(sum[c] / count);
  }
  // Divides neighbouring windows with the same number of elements at once.
  void DivideRow(const Images& g, int64_t y, float* sums) const {
    const auto size = [](Span s) { return std::max<int64_t>(0, s.end - s.begin); };
    const int64_t rows = size(Under(g.h, y));
    for (int64_t x = 0, end; x < g.w.out; x = end) {
      const float count = float(rows * size(Under(g.w, x)));
      for (end = x + 1; end < g.w.out && float(rows * size(Under(g.w, end))) == count;) ++end;
      float* from = sums + x * g.channels;
      loops_->div.loop(from, 1, &count, 0, from, (end - x) * g.channels);
    }
  }

  WindowAttrs attrs_;
  const BinaryKernels* loops_;
};

// Each element gathers its share from the windows that cover it.
template <class T>
class AvgPoolGrad {
 public:
  explicit AvgPoolGrad(const tw::Node& n) : attrs_(n) {}

  // The first input (the input's shape) has been used already, to allocate the output.
  void operator()(tw::Frame frame, tw::In<int32_t>, tw::In<T> grad, tw::Out<T> output) const {
    const Images g = ImagesOf(attrs_, ShapeOf(output), ShapeOf(grad));
    if (output.size() == 0) return;
    const int64_t slices = g.slices(), cost = Cost(g.w.in, g.together(), 4);
    ParallelFor(frame.f, g.batch * slices * g.h.in, cost, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) {
        const int64_t image = n / g.h.in / slices, slice = n / g.h.in % slices, i = n % g.h.in;
        const Slice<const T> dy = SliceOf(g, grad.data(), g.out_pixels(), image, slice);
        const Slice<T> dx = SliceOf(g, output.data(), g.in_pixels(), image, slice);
        const Span rows = Over(g.h, i);
        for (int64_t j = 0; j < g.w.in; ++j) Collect(g, dy, rows, j, dx.data + (i * g.w.in + j) * dx.pixel);
      }
    });
  }

 private:
  static void Collect(const Images& g, const Slice<const T>& dy, Span rows, int64_t j, T* to) {
    const Span columns = Over(g.w, j);
    Wide<T> sum[kChannels];
    std::fill_n(sum, dy.count, Wide<T>(0));
    for (int64_t y = rows.begin; y < rows.end; ++y)
      for (int64_t x = columns.begin; x < columns.end; ++x) {
        const Span under_h = Under(g.h, y), under_w = Under(g.w, x);
        const Wide<T> share = 1 / Wide<T>((under_h.end - under_h.begin) * (under_w.end - under_w.begin));
        const T* from = dy.data + (y * g.w.out + x) * dy.pixel;
        for (int64_t c = 0; c < dy.count; ++c) sum[c] += Wide<T>(from[c]) * share;
      }
    for (int64_t c = 0; c < dy.count; ++c) to[c] = T(sum[c]);
  }

  WindowAttrs attrs_;
};

template <class... T>
void RegisterGradientsV2(tw::Plugin& p) {
  p.kernel<MaxPoolGradV2<T>...>("MaxPoolGradV2 @CPU");
  p.kernel<MaxPoolGradGradV2<T>...>("MaxPoolGradGradV2 @CPU");
}

}  // namespace

void register_pool(tw::Plugin& p) {
  p.kernel<MaxPool<float>, MaxPool<double>, MaxPool<half>, MaxPool<bfloat16>>("MaxPool @CPU");
  p.kernel<MaxPool<int8_t>, MaxPool<int16_t>, MaxPool<int32_t>, MaxPool<int64_t>, MaxPool<uint8_t>, MaxPool<uint16_t>>("MaxPool @CPU");
  p.kernel<MaxPoolGrad<float>, MaxPoolGrad<double>, MaxPoolGrad<half>, MaxPoolGrad<bfloat16>>("MaxPoolGrad @CPU");
  p.kernel<MaxPoolGrad<int8_t>, MaxPoolGrad<int16_t>, MaxPoolGrad<int32_t>, MaxPoolGrad<int64_t>>("MaxPoolGrad @CPU");
  p.kernel<MaxPoolGrad<uint8_t>, MaxPoolGrad<uint16_t>, MaxPoolGrad<uint32_t>, MaxPoolGrad<uint64_t>>("MaxPoolGrad @CPU");
  p.kernel<MaxPoolGradGrad<float>, MaxPoolGradGrad<double>, MaxPoolGradGrad<half>, MaxPoolGradGrad<bfloat16>>("MaxPoolGradGrad @CPU");
  p.kernel<MaxPoolGradGrad<int8_t>, MaxPoolGradGrad<int16_t>, MaxPoolGradGrad<int32_t>, MaxPoolGradGrad<int64_t>>("MaxPoolGradGrad @CPU");
  p.kernel<MaxPoolGradGrad<uint8_t>, MaxPoolGradGrad<uint16_t>, MaxPoolGradGrad<uint32_t>, MaxPoolGradGrad<uint64_t>>(
      "MaxPoolGradGrad @CPU");
  p.kernel<MaxPoolV2<float>, MaxPoolV2<double>, MaxPoolV2<half>, MaxPoolV2<bfloat16>>("MaxPoolV2 @CPU");
  p.kernel<MaxPoolV2<int8_t>, MaxPoolV2<int16_t>, MaxPoolV2<int32_t>, MaxPoolV2<int64_t>, MaxPoolV2<uint8_t>, MaxPoolV2<uint16_t>>(
      "MaxPoolV2 @CPU");
  RegisterGradientsV2<float, double, half, bfloat16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>(p);
  p.kernel<AvgPool<float>, AvgPool<double>, AvgPool<half>, AvgPool<bfloat16>>("AvgPool @CPU");
  p.kernel<AvgPoolGrad<float>, AvgPoolGrad<double>, AvgPoolGrad<half>, AvgPoolGrad<bfloat16>>("AvgPoolGrad @CPU");
}

}  // namespace thalweg::cpu
