// Ops on the bits of numbers: shifts, counts, other element types over the same bits, and reduced precision; conversions too.
#include <iterator>

#include "common.h"
#include "elementwise.h"

namespace thalweg::stablehlo {
namespace {

// Whether the count of a shift is in [0, bits).
Value Inside(Translation& t, const Value& count) {
  const Value below = t.op("Less", {count, t.like(count, BitsOf(count.dtype()))});
  return IsUnsigned(count) ? below : t.op("LogicalAnd", {below, t.op("GreaterEqual", {count, t.like(count, 0)})});
}

void ShiftLeft(Translation& t, Op& op) {
  const Value &x = op.in(0), &count = op.in(1);
  op.out(t.op("SelectV2", {Inside(t, count), t.op("LeftShift", {x, count}), t.like(x, 0)}));
}

void ShiftRightLogical(Translation& t, Op& op) {
  const Value &x = op.in(0), &count = op.in(1);
  const uint32_t plain = UnsignedOf(x.dtype());
  const Value moved = Bits(t, t.op("RightShift", {Bits(t, x, plain), Bits(t, count, plain)}), x.dtype());
  op.out(t.op("SelectV2", {Inside(t, count), moved, t.like(x, 0)}));
}

// Beyond the width, copies of the sign fill the number, as a shift by one less than the width gives them.
void ShiftRightArithmetic(Translation& t, Op& op) {
  const Value &x = op.in(0), &count = op.in(1);
  const uint32_t with_sign = SignedOf(x.dtype());
  const Value most = t.like(count, BitsOf(x.dtype()) - 1.0);
  const Value by = Bits(t, t.op("SelectV2", {Inside(t, count), count, most}), with_sign);
  op.out(Bits(t, t.op("RightShift", {Bits(t, x, with_sign), by}), x.dtype()));
}

void Popcnt(Translation& t, Op& op) { op.out(PopulationCount(t, op.in(0))); }

// All bits below the highest one are set; the others lead.
void CountLeadingZeros(Translation& t, Op& op) {
  const Value& x = op.in(0);
  const uint32_t plain = UnsignedOf(x.dtype()), bits = BitsOf(plain);
  Value filled = Bits(t, x, plain);
  for (uint32_t by = 1; by < bits; by *= 2) filled = t.op("BitwiseOr", {filled, t.op("RightShift", {filled, t.scalar(plain, by)})});
  op.out(Bits(t, t.op("Sub", {t.scalar(plain, bits), PopulationCount(t, filled)}), x.dtype()));
}

void BitcastConvert(Translation& t, Op& op) {
  const Value& x = op.in(0);
  const uint32_t type = op.out_dtype();
  if (x.dtype() == type) return op.out(x);
  if (IsBool(x)) return op.out(Bits(t, t.cast(x, TW_UINT8), type));
  if (type == TW_BOOL) return op.out(t.cast(x, TW_BOOL));
  op.out(t.op("Bitcast", {x}, {{"type", Dtype{type}}}));
}

void ConvertOp(Translation& t, Op& op) { op.out(Convert(t, op.in(0), op.out_dtype())); }

void ReducePrecisionOp(Translation& t, Op& op) { op.out(ReducePrecision(t, op.in(0), op.i("exponent_bits"), op.i("mantissa_bits"))); }

constexpr Entry kBits[] = {
    {"stablehlo.bitcast_convert", &BitcastConvert},
    {"stablehlo.convert", &ConvertOp},
    {"stablehlo.count_leading_zeros", &CountLeadingZeros},
    {"stablehlo.popcnt", &Popcnt},
    {"stablehlo.reduce_precision", &ReducePrecisionOp},
    {"stablehlo.shift_left", &ShiftLeft},
    {"stablehlo.shift_right_arithmetic", &ShiftRightArithmetic},
    {"stablehlo.shift_right_logical", &ShiftRightLogical},
};

}  // namespace

// Sums of neighbouring bits, then of pairs, then of nibbles; one product adds the bytes.
Value PopulationCount(Translation& t, const Value& x) {
  const uint32_t plain = UnsignedOf(x.dtype()), bits = BitsOf(plain);
  const auto number = [&](uint64_t v) { return Whole(t, plain, v); };
  const auto half = [&](const Value& v, uint32_t by, uint64_t mask) {
    return t.op("BitwiseAnd", {t.op("RightShift", {v, number(by)}), number(mask)});
  };
  Value v = Bits(t, x, plain);
  v = t.op("Sub", {v, half(v, 1, 0x5555555555555555u)});
  v = t.op("AddV2", {t.op("BitwiseAnd", {v, number(0x3333333333333333u)}), half(v, 2, 0x3333333333333333u)});
  v = t.op("BitwiseAnd", {t.op("AddV2", {v, t.op("RightShift", {v, number(4)})}), number(0x0f0f0f0f0f0f0f0fu)});
  if (bits > 8) v = t.op("RightShift", {t.op("Mul", {v, number(0x0101010101010101u)}), number(bits - 8)});
  return Bits(t, v, x.dtype());
}

Value Convert(Translation& t, const Value& x, uint32_t dtype) {
  if (x.dtype() == dtype) return x;
  const bool from_complex = IsComplex(x), to_complex = dtype == TW_COMPLEX64 || dtype == TW_COMPLEX128;
  if (dtype == TW_BOOL) return t.op("NotEqual", {x, Like(t, x, 0)});
  if (from_complex && to_complex) {
    const Attrs part = {{"Tout", Dtype{PartOf(x.dtype())}}};
    const uint32_t wanted = PartOf(dtype);
    return t.op("Complex", {t.cast(t.op("Real", {x}, part), wanted), t.cast(t.op("Imag", {x}, part), wanted)}, {{"Tout", Dtype{dtype}}});
  }
  if (from_complex) return Convert(t, t.op("Real", {x}, {{"Tout", Dtype{PartOf(x.dtype())}}}), dtype);
  if (to_complex) {
    const Value real = t.cast(x, PartOf(dtype));
    return t.op("Complex", {real, t.like(real, 0)}, {{"Tout", Dtype{dtype}}});
  }
  return t.cast(x, dtype);
}

Value ReducePrecision(Translation& t, const Value& x, int64_t exponent_bits, int64_t mantissa_bits) {
  struct Format {
    int64_t exponent, mantissa;
  };
  Format f{};
  switch (x.dtype()) {
    case TW_HALF: f = {5, 10}; break;
    case TW_BFLOAT16: f = {8, 7}; break;
    case TW_FLOAT: f = {8, 23}; break;
    case TW_DOUBLE: f = {11, 52}; break;
    default: throw Error{TW_UNIMPLEMENTED, std::string("the precision of ") + importer::DtypeName(x.dtype()) + " cannot be reduced"};
  }
  if (exponent_bits < 1 || mantissa_bits < 0) {
    throw Error{TW_INVALID_ARGUMENT, "exponent_bits is " + std::to_string(exponent_bits) + " and mantissa_bits is " +
                                         std::to_string(mantissa_bits) + "; they must be at least 1 and 0"};
  }
  const uint32_t type = UnsignedOf(x.dtype());
  const auto number = [&](uint64_t v) { return Whole(t, type, v); };
  const uint64_t sign_bit = uint64_t{1} << (f.exponent + f.mantissa);
  const Value original = Bits(t, x, type);
  const Value sign = t.op("BitwiseAnd", {original, number(sign_bit)});
  Value bits = t.op("BitwiseAnd", {original, number(sign_bit - 1)});
  const int64_t dropped = f.mantissa - mantissa_bits;
  if (dropped > 0) {
    // Adds just below half of the last kept bit, and 1 more if that bit is set: ties go to even.
    const uint64_t last = uint64_t{1} << dropped;
    const Value odd = t.op("RightShift", {t.op("BitwiseAnd", {bits, number(last)}), number(static_cast<uint64_t>(dropped))});
    bits = t.op("BitwiseAnd", {t.op("AddV2", {t.op("AddV2", {bits, number(last / 2 - 1)}), odd}), number(~(last - 1))});
  }
  if (exponent_bits < f.exponent) {
    const uint64_t field = ((uint64_t{1} << f.exponent) - 1) << f.mantissa;
    const uint64_t bias = (uint64_t{1} << (f.exponent - 1)) - 1, small_bias = (uint64_t{1} << (exponent_bits - 1)) - 1;
    const Value exponent = t.op("BitwiseAnd", {bits, number(field)});
    const Value over = t.op("Greater", {exponent, number((bias + small_bias) << f.mantissa)});
    const Value under = t.op("LessEqual", {exponent, number((bias - small_bias) << f.mantissa)});
    bits = t.op("SelectV2", {over, number(field), bits});
    bits = t.op("SelectV2", {under, number(0), bits});
  }
  const Value reduced = Bits(t, t.op("BitwiseOr", {bits, sign}), x.dtype());
  const Value nan = t.op("IsNan", {x});
  // Without a mantissa only infinity is left for NaN.
  if (mantissa_bits == 0) {
    const uint64_t field = ((uint64_t{1} << f.exponent) - 1) << f.mantissa;
    return t.op("SelectV2", {nan, Bits(t, t.op("BitwiseOr", {number(field), sign}), x.dtype()), reduced});
  }
  return t.op("SelectV2", {nan, x, reduced});
}

Family bits_translators() { return {std::begin(kBits), std::end(kBits)}; }

}  // namespace thalweg::stablehlo
