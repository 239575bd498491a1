// QuantizedRelu, QuantizedRelu6, QuantizedReluX, QuantizedMaxPool and QuantizedAvgPool. Ranges pass
// through, so the loops see whole numbers alone.
#include <algorithm>
#include <cmath>

#include "kernels/common/parallel.h"
#include "kernels/conv_geometry.h"
#include "kernels/quantised.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

// The number that stands for x, limited to the type.
template <class Q>
typename Q::Whole LimitedPlace(float x, FloatRange r) {
  return typename Q::Whole(std::clamp(PlaceOf<Q>(x, r, "min_features", "max_features"), kLeastWhole<Q>, kMostWhole<Q>));
}

template <class Q>
void Limit(const tw_frame* f, const tw_view* features, const tw_view* activations, typename Q::Whole low, typename Q::Whole high) {
  const auto* x = reinterpret_cast<const typename Q::Whole*>(Bytes(features));
  auto* y = reinterpret_cast<typename Q::Whole*>(Bytes(activations));
  ParallelFor(f, int64_t(features->count), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) y[i] = std::min(std::max(x[i], low), high);
  });
}

template <class Q, bool kSix>
void Relu(tw::Frame frame, tw::In<Q> features, tw::In<float> min_features, tw::In<float> max_features, tw::Out<Q> activations,
          tw::Out<float> min_activations, tw::Out<float> max_activations) {
  const FloatRange r = WideRangeOf(min_features.v, max_features.v, "min_features", "max_features");
  Limit<Q>(frame.f, features.v, activations.v(), LimitedPlace<Q>(0, r), kSix ? LimitedPlace<Q>(6, r) : typename Q::Whole(kMostWhole<Q>));
  min_activations[0] = r.min;
  max_activations[0] = r.max;
}

template <class Q>
void ReluX(tw::Frame frame, tw::In<Q> features, tw::In<float> max_value, tw::In<float> min_features, tw::In<float> max_features,
           tw::Out<Q> activations, tw::Out<float> min_activations, tw::Out<float> max_activations) {
  const FloatRange r = WideRangeOf(min_features.v, max_features.v, "min_features", "max_features");
  if (!std::isfinite(max_value[0])) Invalid("'max_value' is " + std::to_string(max_value[0]) + "; it must be finite");
  Limit<Q>(frame.f, features.v, activations.v(), LimitedPlace<Q>(0, r), LimitedPlace<Q>(max_value[0], r));
  min_activations[0] = r.min;
  max_activations[0] = r.max;
}

// Adds up, or takes the largest of, `channels` numbers of each pixel under a window.
template <class Q, bool kMean>
class Pool {
  using Whole = typename Q::Whole;

 public:
  explicit Pool(const tw::Node& n) : attrs_(n) {}

  void operator()(tw::Frame frame, tw::In<Q> input, tw::In<float> min_input, tw::In<float> max_input, tw::Out<Q> output,
                  tw::Out<float> min_output, tw::Out<float> max_output) const {
    const tw_shape in = ShapeOf(input), out = ShapeOf(output);
    if (in.rank != 4 || out.rank != 4) Invalid("input " + tw::text(in) + " and output " + tw::text(out) + " must have rank 4");
    const WindowAxis h = attrs_.Along(0, in.dims[1], attrs_.window[0]), w = attrs_.Along(1, in.dims[2], attrs_.window[1]);
    if (out.dims[0] != in.dims[0] || out.dims[1] != h.out || out.dims[2] != w.out || out.dims[3] != in.dims[3])
      Invalid("windows over " + tw::text(in) + " make a height of " + tw::text(h.out) + " and a width of " + tw::text(w.out) +
              ", but the pooled tensor is " + tw::text(out));
    min_output[0] = min_input[0];
    max_output[0] = max_input[0];
    if (output.size() == 0) return;
    const auto* from = reinterpret_cast<const Whole*>(input.data());
    auto* to = reinterpret_cast<Whole*>(output.data());
    const int64_t channels = in.dims[3];
    ParallelFor(frame.f, in.dims[0] * h.out * w.out, Cost(h.window, w.window, channels), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        Window(from + i / (w.out * h.out) * h.in * w.in * channels, h, w, i / w.out % h.out, i % w.out, channels, to + i * channels);
    });
  }

 private:
  static void Window(const Whole* image, const WindowAxis& h, const WindowAxis& w, int64_t y, int64_t x, int64_t channels, Whole* to) {
    const int64_t top = y * h.stride - h.before, left = x * w.stride - w.before;
    const int64_t row0 = std::max<int64_t>(0, top), row1 = std::min(h.in, top + h.window);
    const int64_t column0 = std::max<int64_t>(0, left), column1 = std::min(w.in, left + w.window);
    const int64_t count = std::max<int64_t>(0, row1 - row0) * std::max<int64_t>(0, column1 - column0);
    constexpr int64_t kRun = 256;  // channels at a time, whose sums are on the stack
    for (int64_t c = 0; c < channels; c += kRun) {
      const int64_t run = std::min(kRun, channels - c);
      using Sum = std::conditional_t<kMean, int64_t, Whole>;
      Sum sums[kRun];
      std::fill_n(sums, run, kMean ? Sum(0) : Sum(kLeastWhole<Q>));
      for (int64_t i = row0; i < row1; ++i)
        for (int64_t j = column0; j < column1; ++j) {
          const Whole* pixel = image + (i * w.in + j) * channels + c;
          for (int64_t k = 0; k < run; ++k) {
            if constexpr (kMean)
              sums[k] += pixel[k];
            else
              sums[k] = std::max(sums[k], pixel[k]);
          }
        }
      for (int64_t k = 0; k < run; ++k) to[c + k] = Whole(kMean && count > 0 ? sums[k] / Sum(count) : sums[k]);
    }
  }

  WindowAttrs attrs_;
};

}  // namespace

void register_quantized_activation(tw::Plugin& p) {
  p.kernel<Relu<quint8, false>, Relu<qint8, false>, Relu<qint32, false>>("QuantizedRelu @CPU");
  p.kernel<Relu<quint8, true>, Relu<qint8, true>, Relu<qint32, true>>("QuantizedRelu6 @CPU");
  p.kernel<ReluX<quint8>, ReluX<qint8>, ReluX<qint32>>("QuantizedReluX @CPU");
  p.kernel<Pool<quint8, false>, Pool<qint8, false>>("QuantizedMaxPool @CPU");
  p.kernel<Pool<quint8, true>, Pool<qint8, true>>("QuantizedAvgPool @CPU");
}

}  // namespace thalweg::cpu
