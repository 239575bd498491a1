// Element-wise ops of two and three operands: arithmetic, logic, comparisons, select and clamp.
#include <cmath>
#include <iterator>
#include <numbers>

#include "common.h"
#include "elementwise.h"

namespace thalweg::stablehlo {
namespace {

// Of truth values, + is "or" and * is "and".
void Add(Translation& t, Op& op) { op.out(t.op(IsBool(op.in(0)) ? "LogicalOr" : "AddV2", {op.in(0), op.in(1)})); }
void Subtract(Translation& t, Op& op) { op.out(t.op("Sub", {op.in(0), op.in(1)})); }
void Multiply(Translation& t, Op& op) { op.out(t.op(IsBool(op.in(0)) ? "LogicalAnd" : "Mul", {op.in(0), op.in(1)})); }
void And(Translation& t, Op& op) { op.out(t.op(IsBool(op.in(0)) ? "LogicalAnd" : "BitwiseAnd", {op.in(0), op.in(1)})); }
void Or(Translation& t, Op& op) { op.out(t.op(IsBool(op.in(0)) ? "LogicalOr" : "BitwiseOr", {op.in(0), op.in(1)})); }
void Xor(Translation& t, Op& op) { op.out(t.op(IsBool(op.in(0)) ? "NotEqual" : "BitwiseXor", {op.in(0), op.in(1)})); }

// Whether a divisor is known to need no care: no element is 0 or -1.
bool Harmless(const Value& divisor) {
  const Tensor* known = divisor.constant() ? divisor.constant() : divisor.splat();
  if (!known) return false;
  for (int64_t i = 0; i < known->count(); ++i) {
    const int64_t one = known->integer(i);
    if (one == 0 || one == -1) return false;
  }
  return true;
}

// Whole numbers are divided towards 0. As XLA has it, x / 0 has all bits set and the quotient of the least number and -1 is itself.
void Divide(Translation& t, Op& op) {
  const Value &x = op.in(0), &y = op.in(1);
  if (!IsWhole(x)) return op.out(t.op("RealDiv", {x, y}));
  if (Harmless(y)) return op.out(t.op("TruncateDiv", {x, y}));
  const Value zero = t.op("Equal", {y, t.like(y, 0)}), one = t.like(y, 1), ones = Whole(t, y.dtype(), ~uint64_t{0});
  if (IsUnsigned(y)) {
    const Value quotient = t.op("TruncateDiv", {x, t.op("SelectV2", {zero, one, y})});
    return op.out(t.op("SelectV2", {zero, ones, quotient}));
  }
  const Value turns = t.op("Equal", {y, ones});
  const Value safe = t.op("SelectV2", {t.op("LogicalOr", {zero, turns}), one, y});
  const Value quotient = t.op("SelectV2", {turns, t.op("Neg", {x}), t.op("TruncateDiv", {x, safe})});
  op.out(t.op("SelectV2", {zero, ones, quotient}));
}

// The remainder has the sign of the dividend; that of a division by 0 is the dividend.
void Remainder(Translation& t, Op& op) {
  const Value &x = op.in(0), &y = op.in(1);
  if (!IsWhole(x)) return op.out(t.op("TruncateMod", {x, y}));
  const Value zero = t.op("Equal", {y, t.like(y, 0)});
  const Value safe = Harmless(y) ? y : t.op("SelectV2", {zero, t.like(y, 1), y});
  Value rest;
  if (IsUnsigned(x)) {
    rest = t.op("FloorMod", {x, safe});
  } else {
    const uint32_t wide = BitsOf(x.dtype()) < 32 ? uint32_t{TW_INT32} : x.dtype();
    rest = t.cast(t.op("TruncateMod", {t.cast(x, wide), t.cast(safe, wide)}), x.dtype());
  }
  op.out(Harmless(y) ? rest : t.op("SelectV2", {zero, x, rest}));
}

// Complex numbers are ordered by their real parts, then by their imaginary ones.
Value Lesser(Translation& t, const Value& x, const Value& y) {
  const Attrs part = {{"Tout", Dtype{PartOf(x.dtype())}}};
  const Value xr = t.op("Real", {x}, part), yr = t.op("Real", {y}, part);
  const Value tie = t.op("Less", {t.op("Imag", {x}, part), t.op("Imag", {y}, part)});
  return t.op("LogicalOr", {t.op("Less", {xr, yr}), t.op("LogicalAnd", {t.op("Equal", {xr, yr}), tie})});
}

void Maximum(Translation& t, Op& op) {
  const Value &x = op.in(0), &y = op.in(1);
  if (IsBool(x)) return op.out(t.op("LogicalOr", {x, y}));
  if (IsComplex(x)) return op.out(t.op("SelectV2", {Lesser(t, x, y), y, x}));
  op.out(t.op("Maximum", {x, y}));
}

void Minimum(Translation& t, Op& op) {
  const Value &x = op.in(0), &y = op.in(1);
  if (IsBool(x)) return op.out(t.op("LogicalAnd", {x, y}));
  if (IsComplex(x)) return op.out(t.op("SelectV2", {Lesser(t, x, y), x, y}));
  op.out(t.op("Minimum", {x, y}));
}

// A whole number to a negative power is 0, but of 1 it is 1 and of -1 it is 1 or -1.
void Power(Translation& t, Op& op) {
  const Value &x = op.in(0), &y = op.in(1);
  if (!IsWhole(x)) return op.out(t.op("Pow", {x, y}));
  if (IsUnsigned(x)) {
    // Products of the low bits are the same for signed numbers; the exponent loses its last factor of 2 if it is huge.
    const uint32_t wide = TW_INT64;
    return op.out(t.cast(t.op("Pow", {t.cast(x, wide), t.op("Maximum", {t.cast(y, wide), t.scalar(wide, 0)})}), x.dtype()));
  }
  const Value zero = t.like(y, 0), negative = t.op("Less", {y, zero});
  const Value odd = t.op("BitwiseAnd", {y, t.like(y, 1)});
  const Value power = t.op("Pow", {x, t.op("SelectV2", {negative, odd, y})});
  const Value unit = t.op("Equal", {t.op("Abs", {x}), t.like(x, 1)});
  op.out(t.op("SelectV2", {t.op("LogicalAnd", {negative, t.op("LogicalNot", {unit})}), zero, power}));
}

// Of complex numbers: -i log((x + i y) / sqrt(x x + y y)).
void Atan2(Translation& t, Op& op) {
  const Value &y = op.in(0), &x = op.in(1);
  if (!IsComplex(x)) return op.out(t.op("Atan2", {y, x}));
  const uint32_t part = PartOf(x.dtype());
  const Attrs out = {{"Tout", Dtype{x.dtype()}}};
  const Value i = t.op("Complex", {t.scalar(part, 0), t.scalar(part, 1)}, out);
  const Value norm = t.op("Sqrt", {t.op("AddV2", {t.op("Mul", {x, x}), t.op("Mul", {y, y})})});
  const Value turned = t.op("Log", {t.op("RealDiv", {t.op("AddV2", {x, t.op("Mul", {i, y})}), norm})});
  op.out(t.op("Mul", {t.op("Neg", {i}), turned}));
}

void Complex(Translation& t, Op& op) {
  op.out(t.op("Complex", {op.in(0), op.in(1)},
              {{"Tout", Dtype{op.in(0).dtype() == TW_DOUBLE ? uint32_t{TW_COMPLEX128} : uint32_t{TW_COMPLEX64}}}}));
}

void CompareOp(Translation& t, Op& op) {
  op.out(Compare(t, op.s("comparison_direction"), op.s("compare_type", "NOTYPE") == "TOTALORDER", op.in(0), op.in(1)));
}

void Select(Translation& t, Op& op) { op.out(t.op("SelectV2", {op.in(0), op.in(1), op.in(2)})); }

void Clamp(Translation& t, Op& op) {
  const Value &low = op.in(0), &x = op.in(1), &high = op.in(2);
  if (IsComplex(x)) {
    const Value risen = t.op("SelectV2", {Lesser(t, x, low), low, x});
    return op.out(t.op("SelectV2", {Lesser(t, high, risen), high, risen}));
  }
  if (IsBool(x)) return op.out(t.op("LogicalAnd", {t.op("LogicalOr", {x, low}), high}));
  op.out(t.op("Minimum", {t.op("Maximum", {x, low}), high}));
}

constexpr Entry kBinary[] = {
    {"stablehlo.add", &Add},
    {"stablehlo.and", &And},
    {"stablehlo.atan2", &Atan2},
    {"stablehlo.clamp", &Clamp},
    {"stablehlo.compare", &CompareOp},
    {"stablehlo.complex", &Complex},
    {"stablehlo.divide", &Divide},
    {"stablehlo.maximum", &Maximum},
    {"stablehlo.minimum", &Minimum},
    {"stablehlo.multiply", &Multiply},
    {"stablehlo.or", &Or},
    {"stablehlo.power", &Power},
    {"stablehlo.remainder", &Remainder},
    {"stablehlo.select", &Select},
    {"stablehlo.subtract", &Subtract},
    {"stablehlo.xor", &Xor},
};

}  // namespace

// Whole numbers in the order of IEEE 754's total order: -NaN, -infinity, ..., -0, 0, ..., infinity, NaN.
Value TotalOrder(Translation& t, const Value& x) {
  if (!IsReal(x)) return x;
  const uint32_t type = SignedOf(x.dtype());
  const Value bits = Bits(t, x, type);
  const Value turned = t.op("BitwiseXor", {bits, Whole(t, type, (uint64_t{1} << (BitsOf(type) - 1)) - 1)});
  return t.op("SelectV2", {t.op("Less", {bits, t.like(bits, 0)}), turned, bits});
}

Value Compare(Translation& t, const std::string& direction, bool total, const Value& a, const Value& b) {
  Value x = a, y = b;
  if (total) {
    x = TotalOrder(t, x);
    y = TotalOrder(t, y);
  }
  if (direction == "EQ") return t.op("Equal", {x, y});
  if (direction == "NE") return t.op("NotEqual", {x, y});
  if (IsBool(x)) {
    x = t.cast(x, TW_UINT8);
    y = t.cast(y, TW_UINT8);
  }
  if (direction == "LT") return t.op("Less", {x, y});
  if (direction == "LE") return t.op("LessEqual", {x, y});
  if (direction == "GT") return t.op("Greater", {x, y});
  if (direction == "GE") return t.op("GreaterEqual", {x, y});
  throw Error{TW_INVALID_ARGUMENT, "comparison_direction is '" + direction + "'; it must be EQ, NE, LT, LE, GT or GE"};
}

Family binary_translators() { return {std::begin(kBinary), std::end(kBinary)}; }

}  // namespace thalweg::stablehlo
