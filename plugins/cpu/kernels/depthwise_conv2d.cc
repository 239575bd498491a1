// DepthwiseConv2dNative and its gradients: NHWC and NCHW, strides, dilations, any padding. The
// loops compute one result per channel. If there are more, the results are separated first: result
// m of all channels, for each m. That copy also widens half and bfloat16. Channels-first images are
// convolved channel by channel. One task makes each row of a result, and each tap's block of
// channels of the filter's gradient, in a fixed order, so results have the same bits on any number
// of threads.
#include <algorithm>
#include <memory>

#include "kernels/common/parallel.h"
#include "kernels/common/temp.h"
#include "kernels/common/types.h"
#include "kernels/depthwise.h"
#include "kernels/register.h"
#include "kernels/widen.h"
#include "kernels/window.h"

namespace thalweg::cpu {
namespace {

struct Geometry {
  bool channels_first;
  int64_t batch, channels, multiplier;
  WindowAxis h, w;

  int64_t results() const { return channels * multiplier; }
  int64_t taps() const { return h.window * w.window; }
  int64_t in_pixels() const { return h.in * w.in; }
  int64_t out_pixels() const { return h.out * w.out; }
};

template <class V>
tw_shape ShapeOf(const V& v) {
  return {v.dims(), v.rank(), 0};
}

// Fails unless the three shapes belong together: every size that loops later use as a bound is
// checked here.
Geometry GeometryOf(const WindowAttrs& attrs, const tw_shape& in, const tw_shape& filter, const tw_shape& out) {
  if (in.rank != 4 || filter.rank != 4 || out.rank != 4)
    throw tw::Error{TW_INTERNAL,
                    "input " + tw::text(in) + ", filter " + tw::text(filter) + " and output " + tw::text(out) + " must have rank 4"};
  const ImageFormat& f = attrs.format;
  Geometry g{f.channels_first, in.dims[0], in.dims[f.channel()], filter.dims[3], {}, {}};
  g.h = attrs.Along(0, in.dims[f.height()], filter.dims[0]);
  g.w = attrs.Along(1, in.dims[f.width()], filter.dims[1]);
  if (filter.dims[2] != g.channels)
    throw tw::Error{TW_INTERNAL, "the input has " + tw::text(g.channels) + " channels, the filter " + tw::text(filter) + " takes " +
                                     tw::text(filter.dims[2])};
  if (out.dims[0] != g.batch || out.dims[f.height()] != g.h.out || out.dims[f.width()] != g.w.out || out.dims[f.channel()] != g.results())
    throw tw::Error{TW_INTERNAL, "input " + tw::text(in) + " and filter " + tw::text(filter) + " belong to an output of height " +
                                     tw::text(g.h.out) + ", width " + tw::text(g.w.out) + " and " + tw::text(g.results()) +
                                     " channels, but it is " + tw::text(out)};
  return g;
}

DepthwiseAxis AxisOf(const WindowAxis& a) { return {a.in, a.out, a.window, a.stride, a.dilation, a.before}; }

// Returns the part of an image that one call of a loop processes: all channels if they are last,
// else the plane of one channel.
template <class T>
DepthwiseImage<T> PartOf(const Geometry& g) {
  return {AxisOf(g.h), AxisOf(g.w), g.channels_first ? 1 : g.channels, g.channels};
}

// A tensor [rows, channels, results] as [results, rows, channels] in the type of the computation:
// the tensor itself, or a copy.
template <class T>
class Apart {
 public:
  Apart(const VectorTable& v, const tw_frame* f, const T* from, int64_t rows, int64_t channels, int64_t results) {
    if constexpr (!kIsSmallFloat<T>) data_ = from;
    if (!kIsSmallFloat<T> && results == 1) return;
    own_ = TempArray<Wide<T>>(f, size_t(rows * channels * results));
    data_ = own_.get();
    ParallelFor(f, rows, Cost(channels, results, 2), [&](int64_t begin, int64_t end) {
      if (results == 1) return Widen(v, from + begin * channels, own_.get() + begin * channels, (end - begin) * channels);
      for (int64_t m = 0; m < results; ++m)
        for (int64_t i = begin * channels; i < end * channels; ++i) own_[size_t(m * rows * channels + i)] = Wide<T>(from[i * results + m]);
    });
  }
  const Wide<T>* data() const { return data_; }

 private:
  TempArray<Wide<T>> own_;
  const Wide<T>* data_ = nullptr;
};

// The same for a result: Done joins the results in the tensor.
template <class T>
class Together {
 public:
  Together(const tw_frame* f, T* to, int64_t rows, int64_t channels, int64_t results)
      : to_(to), rows_(rows), channels_(channels), results_(results) {
    if (kIsSmallFloat<T> || results > 1) own_ = TempArray<Wide<T>>(f, size_t(rows * channels * results));
  }
  Wide<T>* data() const {
    if constexpr (!kIsSmallFloat<T>)
      if (!own_) return to_;
    return own_.get();
  }
  void Done(const VectorTable& v, const tw_frame* f) const {
    if (!own_) return;
    ParallelFor(f, rows_, Cost(channels_, results_, 2), [&](int64_t begin, int64_t end) {
      if (results_ == 1) return Narrow(v, own_.get() + begin * channels_, to_ + begin * channels_, (end - begin) * channels_);
      for (int64_t m = 0; m < results_; ++m)
        for (int64_t i = begin * channels_; i < end * channels_; ++i) to_[i * results_ + m] = T(own_[size_t(m * rows_ * channels_ + i)]);
    });
  }

 private:
  T* to_;
  int64_t rows_, channels_, results_;
  TempArray<Wide<T>> own_;
};

// Separates a tensor of results. Channels-last results are copied; channels-first results are
// planes, which are separate already.
template <class T>
Apart<T> ResultsApart(const VectorTable& v, const tw_frame* f, const Geometry& g, const T* from) {
  return Apart<T>(v, f, from, g.batch * g.out_pixels(), g.channels_first ? g.results() : g.channels, g.channels_first ? 1 : g.multiplier);
}

// Returns the offset of result m of channel c of an image; c is 0 if the channels are last.
int64_t ResultAt(const Geometry& g, int64_t image, int64_t c, int64_t m) {
  return (g.channels_first ? image * g.results() + c * g.multiplier + m : (m * g.batch + image) * g.channels) * g.out_pixels();
}
int64_t FilterAt(const Geometry& g, int64_t c, int64_t m) { return m * g.taps() * g.channels + c; }
int64_t PixelsAt(const Geometry& g, int64_t image, int64_t c) { return (image * g.channels + c) * g.in_pixels(); }

template <class T>
const DepthwiseEntries<Wide<T>>& EntriesOf(const DepthwiseTable& t) {
  if constexpr (std::is_same_v<T, double>)
    return t.f64;
  else
    return t.f32;
}

struct Tables {
  const DepthwiseTable* depthwise;
  const VectorTable* vector;
  explicit Tables(const tw_host* host) {
    const Isa isa = DetectIsa(host);
    depthwise = &TW_CPU_FOR_ISA(isa, Depthwise);
    vector = &TW_CPU_FOR_ISA(isa, Vectors);
  }
};

template <class T>
class Forward {
 public:
  explicit Forward(const tw::Node& n) : tables_(n.host()), attrs_(n) {}

  void operator()(tw::Frame frame, tw::In<T> input, tw::In<T> filter, tw::Out<T> output) const {
    const Geometry g = GeometryOf(attrs_, ShapeOf(input), ShapeOf(filter), ShapeOf(output));
    if (output.size() == 0) return;
    const VectorTable& v = *tables_.vector;
    const Apart<T> in(v, frame.f, input.data(), g.batch * g.in_pixels(), g.channels, 1);
    const Apart<T> by(v, frame.f, filter.data(), g.taps(), g.channels, g.multiplier);
    const Together<T> to = g.channels_first ? Together<T>(frame.f, output.data(), g.batch * g.out_pixels(), g.results(), 1)
                                            : Together<T>(frame.f, output.data(), g.batch * g.out_pixels(), g.channels, g.multiplier);
    const DepthwiseImage<Wide<T>> d = PartOf<Wide<T>>(g);
    const int64_t planes = g.channels_first ? g.channels : 1, row = g.w.out * d.channels;
    ParallelFor(frame.f, g.batch * planes * g.multiplier * g.h.out, Cost(row, g.taps()), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t y = i % g.h.out, part = i / g.h.out, m = part % g.multiplier;
        const int64_t c = part / g.multiplier % planes, image = part / g.multiplier / planes;
        EntriesOf<T>(*tables_.depthwise)
            .forward_row(d, in.data() + PixelsAt(g, image, c), by.data() + FilterAt(g, c, m), y,
                         to.data() + ResultAt(g, image, c, m) + y * row);
      }
    });
    to.Done(v, frame.f);
  }

 private:
  Tables tables_;
  WindowAttrs attrs_;
};

template <class T>
class BackInput {
 public:
  explicit BackInput(const tw::Node& n) : tables_(n.host()), attrs_(n) {}

  // The first input (sizes) has been used already, to allocate the output.
  void operator()(tw::Frame frame, tw::In<int32_t>, tw::In<T> filter, tw::In<T> grad, tw::Out<T> output) const {
    const Geometry g = GeometryOf(attrs_, ShapeOf(output), ShapeOf(filter), ShapeOf(grad));
    if (output.size() == 0) return;
    const VectorTable& v = *tables_.vector;
    const Apart<T> by(v, frame.f, filter.data(), g.taps(), g.channels, g.multiplier), dy = ResultsApart(v, frame.f, g, grad.data());
    const Together<T> to(frame.f, output.data(), g.batch * g.in_pixels(), g.channels, 1);
    const DepthwiseImage<Wide<T>> d = PartOf<Wide<T>>(g);
    const int64_t planes = g.channels_first ? g.channels : 1, row = g.w.in * d.channels;
    ParallelFor(frame.f, g.batch * planes * g.h.in, Cost(row, g.multiplier, g.taps()), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t c = i / g.h.in % planes, image = i / g.h.in / planes;
        std::fill_n(to.data() + i * row, row, Wide<T>(0));
        for (int64_t m = 0; m < g.multiplier; ++m)
          EntriesOf<T>(*tables_.depthwise)
              .input_row(d, dy.data() + ResultAt(g, image, c, m), by.data() + FilterAt(g, c, m), i % g.h.in, to.data() + i * row);
      }
    });
    to.Done(v, frame.f);
  }

 private:
  Tables tables_;
  WindowAttrs attrs_;
};

template <class T>
class BackFilter {
 public:
  explicit BackFilter(const tw::Node& n) : tables_(n.host()), attrs_(n) {}

  void operator()(tw::Frame frame, tw::In<T> input, tw::In<int32_t>, tw::In<T> grad, tw::Out<T> output) const {
    const Geometry g = GeometryOf(attrs_, ShapeOf(input), ShapeOf(output), ShapeOf(grad));
    if (output.size() == 0) return;
    const VectorTable& v = *tables_.vector;
    const Apart<T> in(v, frame.f, input.data(), g.batch * g.in_pixels(), g.channels, 1), dy = ResultsApart(v, frame.f, g, grad.data());
    const int64_t block = g.channels_first ? 1 : kDepthwiseBlock, blocks = (g.channels + block - 1) / block;
    ParallelFor(frame.f, g.taps() * g.multiplier * blocks, Cost(g.batch, g.out_pixels(), block), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t first = i % blocks * block, m = i / blocks % g.multiplier, tap = i / blocks / g.multiplier;
        const int64_t count = std::min(block, g.channels - first);
        Wide<T> sums[kDepthwiseBlock] = {};
        Sum(g, in.data(), dy.data(), tap, m, first, count, sums);
        for (int64_t k = 0; k < count; ++k) output.data()[(tap * g.channels + first + k) * g.multiplier + m] = T(sums[k]);
      }
    });
  }

 private:
  void Sum(const Geometry& g, const Wide<T>* in, const Wide<T>* dy, int64_t tap, int64_t m, int64_t first, int64_t count,
           Wide<T>* sums) const {
    const DepthwiseImage<Wide<T>> d = PartOf<Wide<T>>(g);
    const int64_t c = g.channels_first ? first : 0;
    for (int64_t image = 0; image < g.batch; ++image)
      EntriesOf<T>(*tables_.depthwise)
          .filter_tap(d, in + PixelsAt(g, image, c), dy + ResultAt(g, image, c, m), tap / g.w.window, tap % g.w.window,
                      g.channels_first ? 0 : first, count, sums);
  }

  Tables tables_;
  WindowAttrs attrs_;
};

}  // namespace

void register_depthwise_conv2d(tw::Plugin& p) {
  p.kernel<Forward<float>, Forward<double>, Forward<half>, Forward<bfloat16>>("DepthwiseConv2dNative @CPU; ?prefers NHWC");
  p.kernel<BackInput<float>, BackInput<double>, BackInput<half>, BackInput<bfloat16>>(
      "DepthwiseConv2dNativeBackpropInput @CPU; ?prefers NHWC");
  p.kernel<BackFilter<float>, BackFilter<double>, BackFilter<half>, BackFilter<bfloat16>>(
      "DepthwiseConv2dNativeBackpropFilter @CPU; ?prefers NHWC");
}

}  // namespace thalweg::cpu
