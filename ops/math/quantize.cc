// Quantisation: floats to whole numbers of 8, 16 or 32 bits that stand for the steps of a range, back
// again, and to other ranges and types.
#include "ops/common/axis_range.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

void QuantizeRule(const tw::Shape& s) {
  if (s.s("round_mode") == "HALF_TO_EVEN" && s.s("mode") != "SCALED")
    Fail("'round_mode' is HALF_TO_EVEN and 'mode' " + std::string(s.s("mode")) + "; only the mode SCALED rounds half to even");
  const double least = s.f("ensure_minimum_range");
  if (!(least >= 0)) Fail("'ensure_minimum_range' is " + Text(least) + "; it must not be negative");
  const MaybeDims in = In(s, 0), range = RangeShape(s, 0, 1, 2, {"input", "min_range", "max_range"});
  Set(s, 0, in);
  Set(s, 1, range);
  Set(s, 2, range);
}

void DequantizeRule(const tw::Shape& s) {
  RangeShape(s, 0, 1, 2, {"input", "min_range", "max_range"});
  Set(s, 0, In(s, 0));
}

// Output 0 has the shape of the input, if it is no range itself. The others are the ends of a range.
template <uint32_t kRanges, bool kElements>
void RequantizeRule(const tw::Shape& s) {
  static constexpr const char* kNames[] = {"input_min", "input_max", "requested_output_min", "requested_output_max"};
  for (uint32_t i = 0; i < kRanges; ++i) WantScalar(s, 1 + i, kNames[i]);
  uint32_t o = 0;
  if (kElements) Set(s, o++, In(s, 0));
  s.out(o, Dims{});
  s.out(o + 1, Dims{});
}

#define QUANTISED "{qint8, quint8, qint32, qint16, quint16}"
#define QUANTISE_MODE "mode: {\"MIN_COMBINED\", \"MIN_FIRST\", \"SCALED\"} = \"MIN_COMBINED\"; "
#define RANGE_OUTPUTS "output_min: float, output_max: float"
#define QUANTISED_INPUT "(input: Tinput, input_min: float, input_max: float"
#define NO_SLOPE "no_gradient \"quantised numbers are whole numbers; QuantizeAndDequantizeV4 and FakeQuant pass gradients\"; "

}  // namespace

void register_quantize(tw::Plugin& p) {
  p.op<nullptr, QuantizeRule>(
      "QuantizeV2(input: float, min_range: float, max_range: float) -> (output: T, " RANGE_OUTPUTS "); T: " QUANTISED "; " QUANTISE_MODE
      "round_mode: {\"HALF_AWAY_FROM_ZERO\", \"HALF_TO_EVEN\"} = \"HALF_AWAY_FROM_ZERO\"; narrow_range: bool = false; axis: int = -1; "
      "ensure_minimum_range: float = 0.01; ?data input; " NO_SLOPE "doc \"floats as the nearest steps of a range\"");
  p.op<nullptr, DequantizeRule>("Dequantize(input: T, min_range: float, max_range: float) -> (output: dtype); T: " QUANTISED
                                "; " QUANTISE_MODE
                                "narrow_range: bool = false; axis: int = -1; dtype: {bfloat16, float} = float; "
                                "?data input; " NO_SLOPE "doc \"the floats that steps of a range stand for\"");
  p.op<nullptr, RequantizeRule<4, true>>(
      "Requantize" QUANTISED_INPUT ", requested_output_min: float, requested_output_max: float) -> (output: out_type, " RANGE_OUTPUTS
      "); Tinput: " QUANTISED "; out_type: " QUANTISED "; ?data input; " NO_SLOPE "doc \"steps of one range as steps of another\"");
  p.op<nullptr, RequantizeRule<2, false>>("RequantizationRange" QUANTISED_INPUT ") -> (" RANGE_OUTPUTS "); Tinput: " QUANTISED
                                          "; ?data input; " NO_SLOPE "doc \"the range of the numbers that the steps stand for\"");
  p.op<nullptr, RequantizeRule<2, true>>("QuantizeDownAndShrinkRange" QUANTISED_INPUT ") -> (output: out_type, " RANGE_OUTPUTS
                                         "); Tinput: " QUANTISED "; out_type: " QUANTISED "; ?data input; " NO_SLOPE
                                         "doc \"steps of a range as steps of the range that they need\"");
}

}  // namespace thalweg::ops
