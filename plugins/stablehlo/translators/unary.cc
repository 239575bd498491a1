// Element-wise ops of one operand: functions of real and complex numbers, signs and roundings, and the parts of complex numbers.
#include <cmath>
#include <iterator>

#include "common.h"

namespace thalweg::stablehlo {
namespace {

template <const char* Name>
void Same(Translation& t, Op& op) {
  op.out(t.op(Name, {op.in(0)}));
}

constexpr const char kCeil[] = "Ceil";
constexpr const char kCos[] = "Cos";
constexpr const char kExp[] = "Exp";
constexpr const char kExpm1[] = "Expm1";
constexpr const char kFloor[] = "Floor";
constexpr const char kIsFinite[] = "IsFinite";
constexpr const char kLog[] = "Log";
constexpr const char kLog1p[] = "Log1p";
constexpr const char kRound[] = "Round";
constexpr const char kRsqrt[] = "Rsqrt";
constexpr const char kSigmoid[] = "Sigmoid";
constexpr const char kSin[] = "Sin";
constexpr const char kSqrt[] = "Sqrt";
constexpr const char kTan[] = "Tan";
constexpr const char kTanh[] = "Tanh";

void Abs(Translation& t, Op& op) {
  const Value& x = op.in(0);
  if (IsComplex(x)) return op.out(t.op("ComplexAbs", {x}, {{"Tout", Dtype{PartOf(x.dtype())}}}));
  op.out(IsUnsigned(x) ? x : t.op("Abs", {x}));
}

void Negate(Translation& t, Op& op) {
  const Value& x = op.in(0);
  op.out(IsUnsigned(x) ? t.op("Sub", {t.like(x, 0), x}) : t.op("Neg", {x}));
}

void Sign(Translation& t, Op& op) {
  const Value& x = op.in(0);
  op.out(IsUnsigned(x) ? t.op("Minimum", {x, t.like(x, 1)}) : t.op("Sign", {x}));
}

void Not(Translation& t, Op& op) { op.out(t.op(IsBool(op.in(0)) ? "LogicalNot" : "Invert", {op.in(0)})); }

// The nearest whole number, halves away from 0. The fraction of |x| is exact, so 0.49999997 stays below a half.
void RoundAway(Translation& t, Op& op) {
  const Value& x = op.in(0);
  const Value size = t.op("Abs", {x}), whole = t.op("Floor", {size});
  const Value up = t.op("GreaterEqual", {t.op("Sub", {size, whole}), t.like(x, 0.5)});
  const Value rounded = t.op("SelectV2", {up, t.op("AddV2", {whole, t.like(x, 1)}), whole});
  // Sign keeps -0 and NaN; an infinite fraction is NaN and compares false.
  op.out(t.op("Mul", {rounded, t.op("Sign", {x})}));
}

// The real cube root: exp(log(|x|) / 3) in double, with one step of Newton's method.
void Cbrt(Translation& t, Op& op) {
  const Value& x = op.in(0);
  if (IsComplex(x)) return op.out(t.op("Pow", {x, t.like(x, 1.0 / 3)}));
  const Value wide = t.cast(x, TW_DOUBLE), size = t.op("Abs", {wide});
  const Value root = t.op("Pow", {size, t.like(wide, 1.0 / 3)});
  const Value square = t.op("Mul", {root, root});
  const Value step = t.op("RealDiv", {t.op("Sub", {t.op("Mul", {square, root}), size}), t.op("Mul", {square, t.like(wide, 3)})});
  // At 0 and infinity the step is NaN; the first root is exact there.
  const Value fine = t.op("IsFinite", {step});
  const Value better = t.op("SelectV2", {fine, t.op("Sub", {root, step}), root});
  const Value signed_root = t.op("Mul", {better, t.op("Sign", {wide})});
  op.out(t.cast(t.op("SelectV2", {t.op("Equal", {wide, t.like(wide, 0)}), wide, signed_root}), x.dtype()));
}

void Real(Translation& t, Op& op) {
  const Value& x = op.in(0);
  op.out(IsComplex(x) ? t.op("Real", {x}, {{"Tout", Dtype{PartOf(x.dtype())}}}) : x);
}

void Imag(Translation& t, Op& op) {
  const Value& x = op.in(0);
  op.out(IsComplex(x) ? t.op("Imag", {x}, {{"Tout", Dtype{PartOf(x.dtype())}}}) : t.op("ZerosLike", {x}));
}

constexpr Entry kUnary[] = {
    {"stablehlo.abs", &Abs},
    {"stablehlo.cbrt", &Cbrt},
    {"stablehlo.ceil", &Same<kCeil>},
    {"stablehlo.cosine", &Same<kCos>},
    {"stablehlo.exponential", &Same<kExp>},
    {"stablehlo.exponential_minus_one", &Same<kExpm1>},
    {"stablehlo.floor", &Same<kFloor>},
    {"stablehlo.imag", &Imag},
    {"stablehlo.is_finite", &Same<kIsFinite>},
    {"stablehlo.log", &Same<kLog>},
    {"stablehlo.log_plus_one", &Same<kLog1p>},
    {"stablehlo.logistic", &Same<kSigmoid>},
    {"stablehlo.negate", &Negate},
    {"stablehlo.not", &Not},
    {"stablehlo.real", &Real},
    {"stablehlo.round_nearest_afz", &RoundAway},
    {"stablehlo.round_nearest_even", &Same<kRound>},
    {"stablehlo.rsqrt", &Same<kRsqrt>},
    {"stablehlo.sign", &Sign},
    {"stablehlo.sine", &Same<kSin>},
    {"stablehlo.sqrt", &Same<kSqrt>},
    {"stablehlo.tan", &Same<kTan>},
    {"stablehlo.tanh", &Same<kTanh>},
};

}  // namespace

Family unary_translators() { return {std::begin(kUnary), std::end(kUnary)}; }

}  // namespace thalweg::stablehlo
