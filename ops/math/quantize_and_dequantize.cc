// QuantizeAndDequantize and its versions: floats rounded to the steps of a quantised type. The
// gradient passes as if there were no steps.
#include "ops/common/axis_range.h"
#include "ops/common/grad.h"
#include "ops/common/types.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

void WantBits(const tw::Shape& s) {
  const int64_t bits = s.i("num_bits"), most = s.b("signed_input") ? 61 : 62;
  if (bits < 1 || bits > most)
    Fail("'num_bits' is " + tw::text(bits) + "; it must be from 1 to " + tw::text(most) + (most == 61 ? " with" : " without") +
         " 'signed_input'");
}

void AttrsRule(const tw::Shape& s) {
  WantBits(s);
  if (s.b("range_given") && !(s.f("input_min") <= s.f("input_max")))
    Fail("'input_min' is " + Text(s.f("input_min")) + " and 'input_max' " + Text(s.f("input_max")) + "; the minimum must not be above");
  Set(s, 0, In(s, 0));
}

template <bool kBitsInput>
void RangeRule(const tw::Shape& s) {
  if (kBitsInput)
    WantScalar(s, 3, "num_bits");
  else
    WantBits(s);
  RangeShape(s, 0, 1, 2, {"input", "input_min", "input_max"});
  Set(s, 0, In(s, 0));
}

void GradRule(const tw::Shape& s) {
  const MaybeDims range = RangeShape(s, 1, 2, 3, {"input", "input_min", "input_max"});
  Set(s, 0, Merge(s, In(s, 0), In(s, 1), "the shapes of 'gradients' and 'input'"));
  Set(s, 1, range);
  Set(s, 2, range);
}

void Through(const tw::Grad& g) { PassBack(g, 0, 0); }

tw_edge InsideRange(const tw::Grad& g, tw_edge dy, uint32_t input) {
  return g.op("QuantizeAndDequantizeV4Grad", {dy, g.x(input), g.x(input + 1), g.x(input + 2)}, {{"axis", g.i("axis")}});
}
void ThroughInside(const tw::Grad& g) {
  const tw_edge made = InsideRange(g, g.dy(), 0);
  for (uint32_t i = 0; i < 3; ++i) g.dx(i, g.out(made, i));
}
void ThroughInsideAgain(const tw::Grad& g) { g.dx(0, InsideRange(g, g.dy(), 1)); }

#define SIGNED "signed_input: bool = true; "
#define BITS "num_bits: int = 8; "
#define FLOATS "T: {bfloat16, half, float, double}; "
#define RANGE_INPUTS "input: T, input_min: T, input_max: T"
#define ROUND "round_mode: {\"HALF_TO_EVEN\", \"HALF_UP\"} = \"HALF_TO_EVEN\"; "
#define NARROW_AXIS "narrow_range: bool = false; axis: int = -1; "

}  // namespace

void register_quantize_and_dequantize(tw::Plugin& p) {
  p.op<Through, AttrsRule>(
      "QuantizeAndDequantize(input: T) -> (output: T); " SIGNED BITS
      "range_given: bool = false; input_min: float = 0.0; input_max: float = 0.0; " FLOATS
      "?data input; doc \"floats rounded to the steps of a quantised type; the range is in attributes, or the input's\"");
  p.op<Through, RangeRule<false>>(
      "QuantizeAndDequantizeV2(" RANGE_INPUTS ") -> (output: T); " SIGNED BITS "range_given: bool = false; " FLOATS ROUND NARROW_AXIS
      "?data input; doc \"floats rounded to the steps of a quantised type; the range is in inputs, or the input's\"");
  p.op<Through, RangeRule<true>>("QuantizeAndDequantizeV3(" RANGE_INPUTS ", num_bits: int32) -> (output: T); " SIGNED
                                 "range_given: bool = true; " FLOATS NARROW_AXIS
                                 "?data input; doc \"QuantizeAndDequantizeV2 with the number of bits in an input\"");
  p.op<ThroughInside, RangeRule<false>>("QuantizeAndDequantizeV4(" RANGE_INPUTS ") -> (output: T); " SIGNED BITS
                                        "range_given: bool = false; " FLOATS ROUND NARROW_AXIS
                                        "?data input; doc \"QuantizeAndDequantizeV2 whose gradient passes inside the range alone\"");
  p.op<ThroughInsideAgain, GradRule>(
      "QuantizeAndDequantizeV4Grad(gradients: T, " RANGE_INPUTS
      ") -> (input_backprop: T, input_min_backprop: T, input_max_backprop: T); " FLOATS
      "axis: int = -1; ?data gradients input; doc \"gradient of QuantizeAndDequantizeV4: passes inside the range\"");
}

}  // namespace thalweg::ops
