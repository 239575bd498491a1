// QuantizedConv2D convolves images of quantised numbers; its forms with a bias make numbers of 8
// bits of the sums. Images are [batch, height, width, channels], filters those of Conv2D.
#include "ops/common/window.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

Dims ImagesOf(const tw::Shape& s) {
  WantRank(s, 0, 4, "input");
  WantRank(s, 1, 4, "filter");
  const Windows windows(s);
  const Dims in = In(s, 0).value_or(Dims(4, -1)), by = In(s, 1).value_or(Dims(4, -1));
  if (by[2] == 0) Fail("the filter is " + Text(In(s, 1)) + ", which has no channels");
  if (Known(in[3]) && Known(by[2])) {
    const int64_t groups = in[3] / by[2];
    if (groups == 0 || in[3] % by[2] != 0)
      Fail("the image is " + Text(In(s, 0)) + " with " + tw::text(in[3]) + " channels, the filter " + Text(In(s, 1)) + " takes " +
           tw::text(by[2]) + "; they must agree, or the filter's divide the image's");
    if (groups > 1 && Known(by[3]) && by[3] % groups != 0)
      Fail("the filter is " + Text(In(s, 1)) + ": its " + tw::text(by[3]) + " results do not divide into " + tw::text(groups) + " groups");
  }
  Dims out{in[0], -1, -1, by[3]};
  for (size_t k = 0; k < 2; ++k) out[1 + k] = windows.OutSize(s, k, in[1 + k], by[k]);
  return out;
}

void SetRange(const tw::Shape& s) {
  s.out(1, Dims{});
  s.out(2, Dims{});
}

void Rule(const tw::Shape& s) {
  s.out(0, ImagesOf(s));
  static constexpr const char* kNames[] = {"min_input", "max_input", "min_filter", "max_filter"};
  for (uint32_t i = 0; i < 4; ++i) WantScalar(s, 2 + i, kNames[i]);
  SetRange(s);
}

// A range of the filter has one entry, or one for each channel of the result.
void WantChannels(const tw::Shape& s, uint32_t i, const char* name, int64_t channels) {
  if (!s.known(i) || s.rank(i) == 0) return;
  WantVector(s, i, name);
  if (s.dim(i, 0) != 1) MergeSize(s, channels, s.dim(i, 0), std::string("the channels of the result and the entries of '") + name + "'");
}

// The convolution with a bias: the rule for inputs 0 to 6.
Dims BiasedShape(const tw::Shape& s) {
  Dims out = ImagesOf(s);
  WantVector(s, 2, "bias");
  if (s.known(2)) out[3] = MergeSize(s, out[3], s.dim(2, 0), "the channels of the result and the entries of 'bias'");
  WantScalar(s, 3, "min_input");
  WantScalar(s, 4, "max_input");
  WantChannels(s, 5, "min_filter", out[3]);
  WantChannels(s, 6, "max_filter", out[3]);
  return out;
}

// The range of the sums has the shape of the filter's.
void SumsRule(const tw::Shape& s) {
  s.out(0, BiasedShape(s));
  const MaybeDims range = Merge(s, In(s, 5), In(s, 6), "the shapes of 'min_filter' and 'max_filter'");
  Set(s, 1, range);
  Set(s, 2, range);
}

template <bool kSum>
void BiasRule(const tw::Shape& s) {
  MaybeDims shape = BiasedShape(s);
  WantScalar(s, 7, "min_freezed_output");
  WantScalar(s, 8, "max_freezed_output");
  if (kSum) {
    shape = Merge(s, In(s, 9), shape, "the shape of 'summand' and that of the convolution's result");
    WantScalar(s, 10, "min_summand");
    WantScalar(s, 11, "max_summand");
  }
  Set(s, 0, shape);
  SetRange(s);
}

#define QUANTISED "{qint8, quint8, qint32, qint16, quint16}"
#define WINDOW "strides: list(int); padding: {\"SAME\", \"VALID\"}; dilations: list(int) = [1, 1, 1, 1]; "
#define NO_SLOPE "no_gradient \"quantised numbers are whole numbers; QuantizeAndDequantizeV4 and FakeQuant pass gradients\"; "
#define RANGES "(output: out_type, min_output: float, max_output: float); "
#define RANGES_OF_INPUTS "min_input: float, max_input: float, min_filter: float, max_filter: float"
#define WITH_BIAS "(input: Tinput, filter: Tfilter, bias: Tbias, " RANGES_OF_INPUTS ", min_freezed_output: float, max_freezed_output: float"
#define SUMS_WITH_BIAS                                                                                                               \
  "(input: Tinput, filter: Tfilter, bias: float, " RANGES_OF_INPUTS ") -> " RANGES TYPES "out_type: " QUANTISED " = qint32; " WINDOW \
  "padding_list: list(int) = []; ?data input filter bias; " NO_SLOPE
#define TYPES "Tinput: " QUANTISED "; Tfilter: " QUANTISED "; "
#define BIAS_ATTRS TYPES "Tbias: {float, qint32}; out_type: " QUANTISED " = "

}  // namespace

void register_quantized_conv2d(tw::Plugin& p) {
  p.op<nullptr, Rule>(
      "QuantizedConv2D(input: Tinput, filter: Tfilter, min_input: float, max_input: float, min_filter: float, max_filter: float) "
      "-> " RANGES TYPES "out_type: " QUANTISED " = qint32; " WINDOW "?data input filter; " NO_SLOPE
      "doc \"exact convolutions of images of quantised numbers\"");
  p.op<nullptr, SumsRule>("QuantizedConv2DWithBias" SUMS_WITH_BIAS "doc \"convolutions of quantised numbers, plus a bias\"");
  p.op<nullptr, SumsRule>("QuantizedConv2DWithBiasAndRelu" SUMS_WITH_BIAS "doc \"Relu of convolutions of quantised numbers plus a bias\"");
  p.op<nullptr, BiasRule<false>>("QuantizedConv2DWithBiasAndRequantize" WITH_BIAS ") -> " RANGES BIAS_ATTRS "qint8; " WINDOW
                                 "padding_list: list(int) = []; ?data input filter bias; " NO_SLOPE
                                 "doc \"convolutions of quantised numbers, plus a bias, in steps of a range\"");
  p.op<nullptr, BiasRule<false>>("QuantizedConv2DWithBiasAndReluAndRequantize" WITH_BIAS ") -> " RANGES BIAS_ATTRS "quint8; " WINDOW
                                 "padding_list: list(int) = []; ?data input filter bias; " NO_SLOPE
                                 "doc \"Relu of convolutions of quantised numbers plus a bias, in steps of a range\"");
  p.op<nullptr, BiasRule<true>>("QuantizedConv2DWithBiasSumAndReluAndRequantize" WITH_BIAS
                                ", summand: Tsummand, min_summand: float, max_summand: float) -> " RANGES TYPES
                                "Tbias: {float, qint32}; Tsummand: " QUANTISED "; out_type: " QUANTISED " = quint8; " WINDOW
                                "padding_list: list(int) = []; ?data input filter bias summand; " NO_SLOPE
                                "doc \"Relu of convolutions of quantised numbers plus a bias and a tensor, in steps of a range\"");
}

}  // namespace thalweg::ops
