// Relu and pooling of quantised numbers, whose ranges stay.
#include "ops/common/window.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

// Output 0 has the shape of the input. The others are the ends of the range.
template <uint32_t kScalars>
void ReluRule(const tw::Shape& s) {
  static constexpr const char* kNames[] = {"max_value", "min_features", "max_features"};
  for (uint32_t i = 0; i < kScalars; ++i) WantScalar(s, 1 + i, kNames[3 - kScalars + i]);
  Set(s, 0, In(s, 0));
  s.out(1, Dims{});
  s.out(2, Dims{});
}

void PoolRule(const tw::Shape& s) {
  WantRank(s, 0, 4, "input");
  WantScalar(s, 1, "min_input");
  WantScalar(s, 2, "max_input");
  const Windows windows(s);
  const Dims ksize = s.ints("ksize");
  const std::string is = "'ksize' is " + Text(ksize);
  if (ksize.size() != 4) Fail(is + "; it needs four entries, one per axis");
  if (ksize[0] != 1 || ksize[3] != 1) Fail(is + "; windows over batch or channels are not offered: those entries must be 1");
  Dims out = In(s, 0).value_or(Dims(4, -1));
  for (size_t k = 0; k < 2; ++k) {
    if (ksize[1 + k] < 1) Fail(is + "; every entry must be at least 1");
    out[1 + k] = windows.OutSize(s, k, out[1 + k], ksize[1 + k]);
  }
  s.out(0, out);
  s.out(1, Dims{});
  s.out(2, Dims{});
}

#define QUANTISED "{qint8, quint8, qint32, qint16, quint16}"
#define RELU                                                                                                               \
  "min_features: float, max_features: float) -> (activations: out_type, min_activations: float, max_activations: float); " \
  "Tinput: " QUANTISED "; out_type: " QUANTISED " = quint8; ?data features; "
#define POOL                                                                                                           \
  "(input: T, min_input: float, max_input: float) -> (output: T, min_output: float, max_output: float); T: " QUANTISED \
  "; ksize: list(int); strides: list(int); padding: {\"SAME\", \"VALID\"}; ?data input; "
#define NO_SLOPE "no_gradient \"quantised numbers are whole numbers; QuantizeAndDequantizeV4 and FakeQuant pass gradients\"; "

}  // namespace

void register_quantized_activation(tw::Plugin& p) {
  p.op<nullptr, ReluRule<2>>("QuantizedRelu(features: Tinput, " RELU NO_SLOPE "doc \"numbers that stand for less than 0 as that for 0\"");
  p.op<nullptr, ReluRule<2>>("QuantizedRelu6(features: Tinput, " RELU NO_SLOPE "doc \"numbers limited to those that stand for 0 and 6\"");
  p.op<nullptr, ReluRule<3>>("QuantizedReluX(features: Tinput, max_value: float, " RELU NO_SLOPE
                             "doc \"numbers limited to those that stand for 0 and for a value\"");
  p.op<nullptr, PoolRule>("QuantizedMaxPool" POOL NO_SLOPE "doc \"the largest number of each window\"");
  p.op<nullptr, PoolRule>("QuantizedAvgPool" POOL NO_SLOPE "doc \"the mean of the numbers of each window\"");
}

}  // namespace thalweg::ops
