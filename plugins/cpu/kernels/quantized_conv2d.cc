// QuantizedConv2D, and its forms with a bias whose results are numbers of 8 bits. Each window is
// gathered as a row of a product. Elements in the padding are the zero point.
#include <algorithm>
#include <cstring>

#include "kernels/conv_geometry.h"
#include "kernels/int8_product.h"
#include "kernels/int8_result.h"
#include "kernels/quantised.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

// The bytes under a window, in the order (tap of h, tap of w, channel).
class WindowRows {
 public:
  WindowRows(const ConvGeometry& g, const uint8_t* images, int64_t group, uint8_t zero)
      : g_(g), images_(images + group * g.group_in), zero_(zero) {}

  const uint8_t* operator()(int64_t i, uint8_t* room) const {
    const int64_t x = i % g_.w.out, y = i / g_.w.out % g_.h.out, n = i / g_.w.out / g_.h.out;
    const uint8_t* image = images_ + n * g_.h.in * g_.w.in * g_.in_channels;
    const int64_t row = y * g_.h.stride - g_.h.before, column = x * g_.w.stride - g_.w.before;
    if (g_.taps() == 1 && Inside(row, g_.h.in) && Inside(column, g_.w.in)) return image + (row * g_.w.in + column) * g_.in_channels;
    uint8_t* to = room;
    for (int64_t t = 0; t < g_.h.window; ++t, to += g_.w.window * g_.group_in) {
      const int64_t at = row + t * g_.h.dilation;
      if (Inside(at, g_.h.in))
        Line(image + at * g_.w.in * g_.in_channels, column, to);
      else
        std::memset(to, zero_, size_t(g_.w.window * g_.group_in));
    }
    return room;
  }

 private:
  static bool Inside(int64_t at, int64_t size) { return at >= 0 && at < size; }

  // The taps of one line of the image, of which the window's first is at `column`.
  void Line(const uint8_t* line, int64_t column, uint8_t* to) const {
    const int64_t channels = g_.group_in;
    if (g_.w.dilation == 1 && g_.groups == 1) {
      const int64_t begin = std::clamp<int64_t>(-column, 0, g_.w.window), end = std::clamp<int64_t>(g_.w.in - column, begin, g_.w.window);
      std::memset(to, zero_, size_t(begin * channels));
      if (begin < end) std::memcpy(to + begin * channels, line + (column + begin) * channels, size_t((end - begin) * channels));
      std::memset(to + end * channels, zero_, size_t((g_.w.window - end) * channels));
      return;
    }
    for (int64_t t = 0; t < g_.w.window; ++t, to += channels) {
      const int64_t at = column + t * g_.w.dilation;
      if (Inside(at, g_.w.in))
        std::memcpy(to, line + at * g_.in_channels, size_t(channels));
      else
        std::memset(to, zero_, size_t(channels));
    }
  }

  const ConvGeometry& g_;
  const uint8_t* images_;
  uint8_t zero_;
};

bool ReadsPadding(const WindowAxis& a) {
  return a.out > 0 && (a.before > 0 || (a.out - 1) * a.stride - a.before + (a.window - 1) * a.dilation >= a.in);
}

class ConvolutionOf8 {
 public:
  explicit ConvolutionOf8(const tw::Node& n) : table_(Int8TableFor(n.host())), attrs_(n), slots_(WorkerSlots()) {}

  uint64_t scratch(const tw::Node& n) const {
    const uint32_t out = n.node->n_in;
    if (HasNoElements(n.node->shapes[out])) return 0;
    return ScratchOf(ConvGeometryOf(attrs_, n.node->shapes[0], n.node->shapes[1], n.node->shapes[out])).bytes(slots_);
  }

 protected:
  Int8Scratch ScratchOf(const ConvGeometry& g) const {
    return Int8Scratch(table_, g.batch * g.h.out * g.w.out, g.group_out, g.taps() * g.group_in);
  }

  // result(i, j, n, sums): takes channels [j, j + n) of result pixel i.
  template <class In, class Filter, class Result>
  void Run(const tw_frame* f, const tw_view* input, const tw_view* filter, const tw_view* output, int64_t zero_in, int64_t zero_filter,
           Result&& result) const {
    const ConvGeometry g = ConvGeometryOf(attrs_, Shape(input), Shape(filter), Shape(output));
    if (output->count == 0) return;
    if ((ReadsPadding(g.h) || ReadsPadding(g.w)) && (zero_in < kLeastWhole<In> || zero_in > kMostWhole<In>))
      Invalid("no number of 'input' stands for 0, with which the image would be padded; its range must contain 0");
    Int8Product p{};
    p.m = g.batch * g.h.out * g.w.out;
    p.n = g.group_out;
    p.k = g.taps() * g.group_in;
    p.b_row = g.out_channels;
    p.b_column = 1;
    p.signed_a = kSignedWhole<In>;
    p.signed_b = kSignedWhole<Filter>;
    p.zero_a = uint32_t(zero_in);
    p.zero_b = uint32_t(zero_filter);
    const Workspace work(f, ScratchOf(g).bytes(slots_));
    for (int64_t group = 0; group < g.groups; ++group) {
      p.b = reinterpret_cast<const uint8_t*>(Bytes(filter)) + group * g.group_out;
      const WindowRows rows(g, reinterpret_cast<const uint8_t*>(Bytes(input)), group, uint8_t(zero_in));
      const int64_t first = group * g.group_out;
      MultiplyInt8(table_, f, p, slots_, work.data(), rows,
                   [&result, first](int64_t i, int64_t j, int64_t n, const int32_t* sums) { result(i, first + j, n, sums); });
    }
  }

  static tw_shape Shape(const tw_view* v) { return {v->dims, v->rank, 0}; }

  const Int8Table& table_;
  WindowAttrs attrs_;
  int slots_;
};

template <class In, class Filter>
class QuantizedConv2D : public ConvolutionOf8 {
 public:
  using ConvolutionOf8::ConvolutionOf8;

  void operator()(tw::Frame frame, tw::In<In> input, tw::In<Filter> filter, tw::In<float> min_input, tw::In<float> max_input,
                  tw::In<float> min_filter, tw::In<float> max_filter, tw::Out<qint32> output, tw::Out<float> min_output,
                  tw::Out<float> max_output) const {
    const FloatRange ri = WideRangeOf(min_input.v, max_input.v, "min_input", "max_input"),
                     rf = WideRangeOf(min_filter.v, max_filter.v, "min_filter", "max_filter");
    auto* to = reinterpret_cast<int32_t*>(Bytes(output.v()));
    const int64_t channels = output.dim(-1);
    Run<In, Filter>(frame.f, input.v, filter.v, output.v(), ZeroPointOf<In>(ri, "min_input", "max_input"),
                    ZeroPointOf<Filter>(rf, "min_filter", "max_filter"),
                    [to, channels](int64_t i, int64_t j, int64_t n, const int32_t* sums) {
                      std::memcpy(to + i * channels + j, sums, size_t(n) * sizeof *sums);
                    });
    const FloatRange r = ProductRange(StepOf<In>(ri), StepOf<Filter>(rf));
    min_output[0] = r.min;
    max_output[0] = r.max;
  }
};

// The forms with a bias; all ranges are SCALED.
template <class In, bool kRelu>
class Summed : public ConvolutionOf8 {
 public:
  using ConvolutionOf8::ConvolutionOf8;

  void operator()(tw::Frame frame, tw::In<In> input, tw::In<qint8> filter, tw::In<float> bias, tw::In<float> min_input,
                  tw::In<float> max_input, tw::In<float> min_filter, tw::In<float> max_filter, tw::Out<qint32> output,
                  tw::Out<float> min_output, tw::Out<float> max_output) const {
    const int64_t channels = output.dim(-1);
    const Int8ResultArgs args{channels,     ScaledStep(RangeAt(min_input.v, max_input.v, 0, "min_input", "max_input"), kSignedWhole<In>),
                              bias.v,       min_filter.v,
                              max_filter.v, "min_filter",
                              "max_filter", nullptr,
                              nullptr};
    const Int8Sums results(frame.f, args, kRelu);
    auto* to = reinterpret_cast<int32_t*>(Bytes(output.v()));
    Run<In, qint8>(frame.f, input.v, filter.v, output.v(), 0, 0,
                   [&results, to, channels](int64_t i, int64_t j, int64_t n, const int32_t* sums) {
                     results.Write(j, n, sums, to + i * channels + j);
                   });
    WriteRangesOfSums(args, min_output, max_output);
  }
};

template <class In, class Bias, class Q, bool kRelu>
class Requantized : public ConvolutionOf8 {
 public:
  using ConvolutionOf8::ConvolutionOf8;

  void operator()(tw::Frame frame, tw::In<In> input, tw::In<qint8> filter, tw::In<Bias> bias, tw::In<float> min_input,
                  tw::In<float> max_input, tw::In<float> min_filter, tw::In<float> max_filter, tw::In<float> min_freezed,
                  tw::In<float> max_freezed, tw::Out<Q> output, tw::Out<float> min_output, tw::Out<float> max_output) const {
    const int64_t channels = output.dim(-1);
    const Int8Result results(table_, frame.f,
                             {channels, ScaledStep(RangeAt(min_input.v, max_input.v, 0, "min_input", "max_input"), kSignedWhole<In>),
                              bias.v, min_filter.v, max_filter.v, "min_filter", "max_filter", min_freezed.v, max_freezed.v},
                             output.v()->dtype, kRelu);
    auto* to = reinterpret_cast<uint8_t*>(Bytes(output.v()));
    Run<In, qint8>(frame.f, input.v, filter.v, output.v(), 0, 0,
                   [&results, to, channels](int64_t i, int64_t j, int64_t n, const int32_t* sums) {
                     results.ToBytes(j, n, sums, to + i * channels + j);
                   });
    min_output[0] = min_freezed[0];
    max_output[0] = max_freezed[0];
  }
};

// Adds a tensor of the result's shape, SCALED too, before Relu.
template <class In, class Bias, class Summand>
class SummedAndRequantized : public ConvolutionOf8 {
 public:
  using ConvolutionOf8::ConvolutionOf8;

  void operator()(tw::Frame frame, tw::In<In> input, tw::In<qint8> filter, tw::In<Bias> bias, tw::In<float> min_input,
                  tw::In<float> max_input, tw::In<float> min_filter, tw::In<float> max_filter, tw::In<float> min_freezed,
                  tw::In<float> max_freezed, tw::In<Summand> summand, tw::In<float> min_summand, tw::In<float> max_summand,
                  tw::Out<quint8> output, tw::Out<float> min_output, tw::Out<float> max_output) const {
    const int64_t channels = output.dim(-1);
    if (summand.size() != output.size())
      Invalid("'summand' is " + DimsText(summand.v) + ", but the result is " + DimsText(output.v()) + "; the shapes must be equal");
    const Int8Result results(table_, frame.f,
                             {channels, ScaledStep(RangeAt(min_input.v, max_input.v, 0, "min_input", "max_input"), kSignedWhole<In>),
                              bias.v, min_filter.v, max_filter.v, "min_filter", "max_filter", min_freezed.v, max_freezed.v},
                             TW_QUINT8, true);
    const auto step =
        float(ScaledStep(RangeAt(min_summand.v, max_summand.v, 0, "min_summand", "max_summand"), kSignedWhole<Summand>) / results.step());
    auto* to = reinterpret_cast<uint8_t*>(Bytes(output.v()));
    const auto* add = reinterpret_cast<const typename Summand::Whole*>(Bytes(summand.v));
    Run<In, qint8>(frame.f, input.v, filter.v, output.v(), 0, 0,
                   [&results, to, add, step, channels](int64_t i, int64_t j, int64_t n, const int32_t* sums) {
                     constexpr int64_t kRun = 128;
                     float offset[kRun];
                     for (int64_t begin = 0; begin < n; begin += kRun) {
                       const int64_t first = j + begin, run = std::min(kRun, n - begin);
                       const typename Summand::Whole* x = add + i * channels + first;
                       for (int64_t c = 0; c < run; ++c) offset[c] = results.offset()[first + c] + float(x[c]) * step;
                       results.ToBytes(first, run, sums + begin, to + i * channels + first, offset);
                     }
                   });
    min_output[0] = min_freezed[0];
    max_output[0] = max_freezed[0];
  }
};

template <bool kRelu, class Bias>
void RegisterRequantized(tw::Plugin& p, const char* spec) {
  p.kernel<Requantized<quint8, Bias, quint8, kRelu>, Requantized<quint8, Bias, qint8, kRelu>>(spec);
  p.kernel<Requantized<qint8, Bias, quint8, kRelu>, Requantized<qint8, Bias, qint8, kRelu>>(spec);
}

template <class Bias>
void RegisterSummed(tw::Plugin& p) {
  const char* spec = "QuantizedConv2DWithBiasSumAndReluAndRequantize @CPU";
  p.kernel<SummedAndRequantized<quint8, Bias, quint8>, SummedAndRequantized<quint8, Bias, qint8>>(spec);
  p.kernel<SummedAndRequantized<qint8, Bias, quint8>, SummedAndRequantized<qint8, Bias, qint8>>(spec);
}

}  // namespace

void register_quantized_conv2d(tw::Plugin& p) {
  p.kernel<QuantizedConv2D<quint8, quint8>, QuantizedConv2D<quint8, qint8>>("QuantizedConv2D @CPU");
  p.kernel<QuantizedConv2D<qint8, quint8>, QuantizedConv2D<qint8, qint8>>("QuantizedConv2D @CPU");
  p.kernel<Summed<quint8, false>, Summed<qint8, false>>("QuantizedConv2DWithBias @CPU");
  p.kernel<Summed<quint8, true>, Summed<qint8, true>>("QuantizedConv2DWithBiasAndRelu @CPU");
  RegisterRequantized<false, float>(p, "QuantizedConv2DWithBiasAndRequantize @CPU");
  RegisterRequantized<false, qint32>(p, "QuantizedConv2DWithBiasAndRequantize @CPU");
  RegisterRequantized<true, float>(p, "QuantizedConv2DWithBiasAndReluAndRequantize @CPU");
  RegisterRequantized<true, qint32>(p, "QuantizedConv2DWithBiasAndReluAndRequantize @CPU");
  RegisterSummed<float>(p);
  RegisterSummed<qint32>(p);
}

}  // namespace thalweg::cpu
