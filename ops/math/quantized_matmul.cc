// QuantizedMatMul multiplies two matrices of quantised numbers; its forms with a bias make sums, floats
// or numbers of 8 bits.
#include "ops/common/shape.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

// The shape of the product of inputs 0 and 1.
Dims ProductShape(const tw::Shape& s) {
  WantRank(s, 0, 2, "a");
  WantRank(s, 1, 2, "b");
  const bool ta = s.b("transpose_a"), tb = s.b("transpose_b");
  const Dims a = s.known(0) ? *In(s, 0) : Dims{-1, -1}, b = s.known(1) ? *In(s, 1) : Dims{-1, -1};
  const int64_t inner_a = a[ta ? 0 : 1], inner_b = b[tb ? 1 : 0];
  if (Known(inner_a) && Known(inner_b) && inner_a != inner_b)
    Fail("inner dimensions differ: a is " + tw::text(s.in(0)) + (ta ? " transposed" : "") + ", b is " + tw::text(s.in(1)) +
         (tb ? " transposed" : "") + "; change transpose_a or transpose_b, or reshape one of them");
  return {a[ta ? 1 : 0], b[tb ? 0 : 1]};
}

void Rule(const tw::Shape& s) {
  s.out(0, ProductShape(s));
  static constexpr const char* kNames[] = {"min_a", "max_a", "min_b", "max_b"};
  for (uint32_t i = 0; i < 4; ++i) WantScalar(s, 2 + i, kNames[i]);
  s.out(1, Dims{});
  s.out(2, Dims{});
}

// A range of b has one entry, or one for each column.
void WantColumns(const tw::Shape& s, uint32_t i, const char* name, int64_t columns) {
  if (!s.known(i) || s.rank(i) == 0) return;
  WantVector(s, i, name);
  if (s.dim(i, 0) != 1) MergeSize(s, columns, s.dim(i, 0), std::string("the columns of the product and the entries of '") + name + "'");
}

// The product with a bias: the rule for all inputs but the range of the result.
Dims BiasedShape(const tw::Shape& s) {
  Dims out = ProductShape(s);
  WantVector(s, 2, "bias");
  if (s.known(2)) out[1] = MergeSize(s, out[1], s.dim(2, 0), "the columns of the product and the entries of 'bias'");
  WantScalar(s, 3, "min_a");
  WantScalar(s, 4, "max_a");
  WantColumns(s, 5, "min_b", out[1]);
  WantColumns(s, 6, "max_b", out[1]);
  return out;
}

// The range of the sums has the shape of b's.
void SumsRule(const tw::Shape& s) {
  s.out(0, BiasedShape(s));
  const MaybeDims range = Merge(s, In(s, 5), In(s, 6), "the shapes of 'min_b' and 'max_b'");
  Set(s, 1, range);
  Set(s, 2, range);
}

template <bool kRange>
void BiasRule(const tw::Shape& s) {
  s.out(0, BiasedShape(s));
  WantScalar(s, 7, "min_freezed_output");
  WantScalar(s, 8, "max_freezed_output");
  if (!kRange) return;
  s.out(1, Dims{});
  s.out(2, Dims{});
}

#define QUANTISED "{qint8, quint8, qint32, qint16, quint16}"
#define TURNED "transpose_a: bool = false; transpose_b: bool = false; "
#define RANGES_OF_FACTORS "min_a: float, max_a: float, min_b: float, max_b: float"
#define WITH_BIAS "(a: T1, b: T2, bias: Tbias, " RANGES_OF_FACTORS ", min_freezed_output: float, max_freezed_output: float) -> "
#define BIAS_TYPES "T1: " QUANTISED "; T2: " QUANTISED "; Tbias: {float, qint32}; "
#define INPUT_MODE "input_quant_mode: {\"MIN_FIRST\", \"SCALED\"} = \"MIN_FIRST\"; "
#define NO_SLOPE "no_gradient \"quantised numbers are whole numbers; QuantizeAndDequantizeV4 and FakeQuant pass gradients\"; "
#define RANGES "(out: Toutput, min_out: float, max_out: float); "

}  // namespace

void register_quantized_matmul(tw::Plugin& p) {
  p.op<nullptr, Rule>("QuantizedMatMul(a: T1, b: T2, min_a: float, max_a: float, min_b: float, max_b: float) -> " RANGES "T1: " QUANTISED
                      "; T2: " QUANTISED "; Toutput: " QUANTISED " = qint32; " TURNED "Tactivation: " QUANTISED
                      " = quint8; ?data a b; " NO_SLOPE "doc \"the exact product of two matrices of quantised numbers\"");
  p.op<nullptr, SumsRule>("QuantizedMatMulWithBias(a: T1, b: T2, bias: Tbias, " RANGES_OF_FACTORS ") -> " RANGES BIAS_TYPES
                          "Toutput: " QUANTISED " = qint32; " TURNED INPUT_MODE "?data a b bias; " NO_SLOPE
                          "doc \"a product of quantised numbers, plus a bias\"");
  p.op<nullptr, SumsRule>("QuantizedMatMulWithBiasAndRelu(a: T1, b: T2, bias: float, " RANGES_OF_FACTORS ") -> " RANGES "T1: " QUANTISED
                          "; T2: " QUANTISED "; Toutput: " QUANTISED " = qint32; " TURNED INPUT_MODE "?data a b bias; " NO_SLOPE
                          "doc \"Relu of a product of quantised numbers plus a bias\"");
  p.op<nullptr, BiasRule<true>>("QuantizedMatMulWithBiasAndRequantize" WITH_BIAS RANGES BIAS_TYPES "Toutput: " QUANTISED
                                " = quint8; " TURNED INPUT_MODE "?data a b bias; " NO_SLOPE
                                "doc \"a product of quantised numbers, plus a bias, in steps of a range\"");
  p.op<nullptr, BiasRule<true>>("QuantizedMatMulWithBiasAndReluAndRequantize" WITH_BIAS RANGES BIAS_TYPES "Toutput: " QUANTISED
                                " = quint8; " TURNED INPUT_MODE "?data a b bias; " NO_SLOPE
                                "doc \"Relu of a product of quantised numbers plus a bias, in steps of a range\"");
  p.op<nullptr, BiasRule<false>>("QuantizedMatMulWithBiasAndDequantize" WITH_BIAS "(out: Toutput); " BIAS_TYPES
                                 "Toutput: {float}; " TURNED INPUT_MODE "?data a b bias; " NO_SLOPE
                                 "doc \"a product of quantised numbers, plus a bias, as floats\"");
}

}  // namespace thalweg::ops
