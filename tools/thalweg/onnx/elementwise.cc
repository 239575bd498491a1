// Ops that compute each element on its own.
#include <cmath>
#include <cstring>

#include "table.h"

namespace thalweg::cli::onnx {
namespace {

// Applies `f` to input 0 in the order of axes that it has.
template <class F>
void Each(Op& o, const F& f) {
  if (o.prefers_first(0)) {
    o.out_first(0, f(o.first(0)));
  } else {
    o.out(0, f(o.in(0)));
  }
}

// Applies `f` to inputs 0 and 1, with channels first if one input is there in that form only and the other broadcasts to it.
template <class F>
void Pair(Op& o, const F& f) {
  const auto fits = [&](uint32_t image, uint32_t other) {
    const int32_t rank = o.rank(image);
    return o.prefers_first(image) && rank >= 3 && (o.rank(other) == rank || o.rank(other) == 1 || o.rank(other) == 0);
  };
  const uint32_t image = o.prefers_first(0) ? 0 : 1;
  if (!fits(image, 1 - image)) {
    o.out(0, f(o.in(0), o.in(1)));
    return;
  }
  const auto side = [&](uint32_t i) -> Name {
    if (o.rank(i) == o.rank(image)) return o.first(i);
    if (o.rank(i) == 0) return o.in(i);
    Sizes shape(size_t(o.rank(image)) - 1, 1);
    shape[0] = -1;
    return o.net.Add("Reshape", {o.in(i), o.net.Ints(shape)});
  };
  const Name a = side(0), b = side(1);
  o.out_first(0, f(a, b));
}

void Unary(Op& o, const char* twin) {
  Each(o, [&](const Name& x) { return o.net.Add(twin, {x}); });
}

void Binary(Op& o, const char* twin) {
  Pair(o, [&](const Name& a, const Name& b) { return o.net.Add(twin, {a, b}); });
}

void NotEqual(Op& o, const char*) {
  Pair(o, [&](const Name& a, const Name& b) { return o.net.Add("Not", {o.net.Add("Equal", {a, b})}); });
}

void SquaredDifference(Op& o, const char*) {
  Pair(o, [&](const Name& a, const Name& b) {
    const Name d = o.net.Add("Sub", {a, b});
    return o.net.Add("Mul", {d, d});
  });
}

bool IsReal(uint32_t dtype) { return dtype == TW_FLOAT || dtype == TW_DOUBLE || dtype == TW_HALF || dtype == TW_BFLOAT16; }

// The remainder with the sign of the divisor.
Name FloorRemainder(Op& o, const Name& a, const Name& b) {
  if (!IsReal(o.dtype(0))) return o.net.Add("Mod", {a, b});
  const Name whole = o.net.Add("Floor", {o.net.Add("Div", {a, b})});
  return o.net.Add("Sub", {a, o.net.Add("Mul", {whole, b})});
}

void FloorMod(Op& o, const char*) {
  Pair(o, [&](const Name& a, const Name& b) { return FloorRemainder(o, a, b); });
}

void FloorDiv(Op& o, const char*) {
  Pair(o, [&](const Name& a, const Name& b) {
    if (IsReal(o.dtype(0))) return o.net.Add("Floor", {o.net.Add("Div", {a, b})});
    return o.net.Add("Div", {o.net.Add("Sub", {a, FloorRemainder(o, a, b)}), b});  // Div of integers cuts towards 0
  });
}

void TruncateMod(Op& o, const char*) {
  Pair(o, [&](const Name& a, const Name& b) { return o.net.Add("Mod", {a, b}, {{"fmod", int64_t{1}}}); });
}

// `twin` where b is not 0, else 0.
void NoNan(Op& o, const char* twin) {
  Pair(o, [&](const Name& a, const Name& b) {
    const Name zero = o.net.Scalar(o.dtype(0), 0);
    return o.net.Add("Where", {o.net.Add("Equal", {b, zero}), zero, o.net.Add(twin, {a, b})});
  });
}

void Square(Op& o, const char*) {
  Each(o, [&](const Name& x) { return o.net.Add("Mul", {x, x}); });
}

void Rsqrt(Op& o, const char*) {
  Each(o, [&](const Name& x) { return o.net.Add("Reciprocal", {o.net.Add("Sqrt", {x})}); });
}

void Relu6(Op& o, const char*) {
  Each(o, [&](const Name& x) { return o.net.Add("Clip", {x, o.net.Scalar(o.dtype(0), 0), o.net.Scalar(o.dtype(0), 6)}); });
}

void LeakyRelu(Op& o, const char*) {
  Each(o, [&](const Name& x) { return o.net.Add("LeakyRelu", {x}, {{"alpha", o.f("alpha")}}); });
}

void Log1p(Op& o, const char*) {
  Each(o, [&](const Name& x) { return o.net.Add("Log", {o.net.Add("Add", {x, o.net.Scalar(o.dtype(0), 1)})}); });
}

void Expm1(Op& o, const char*) {
  Each(o, [&](const Name& x) { return o.net.Add("Sub", {o.net.Add("Exp", {x}), o.net.Scalar(o.dtype(0), 1)}); });
}

void Erfc(Op& o, const char*) {
  Each(o, [&](const Name& x) { return o.net.Add("Sub", {o.net.Scalar(o.dtype(0), 1), o.net.Add("Erf", {x})}); });
}

void IsFinite(Op& o, const char*) {
  Each(o, [&](const Name& x) { return o.net.Add("Not", {o.net.Add("Or", {o.net.Add("IsNaN", {x}), o.net.Add("IsInf", {x})})}); });
}

void Cast(Op& o, const char*) {
  Each(o, [&](const Name& x) { return o.net.Cast(x, o.type("DstT")); });
}

void AddN(Op& o, const char*) { o.out(0, o.net.Add("Sum", o.all())); }

void SelectV2(Op& o, const char*) { o.out(0, o.net.Add("Where", o.all())); }

// The first form has a condition of the shape of the values, or a vector that chooses among rows.
void Select(Op& o, const char*) {
  if (o.known_rank(0) == o.known_rank(1)) return SelectV2(o, "");
  Sizes shape(size_t(o.rank(1)), 1);
  if (o.rank(0) == 1) shape[0] = -1;
  o.out(0, o.net.Add("Where", {o.net.Add("Reshape", {o.in(0), o.net.Ints(shape)}), o.in(1), o.in(2)}));
}

void ClipByValue(Op& o, const char*) { o.out(0, o.net.Add("Min", {o.net.Add("Max", {o.in(0), o.in(1)}), o.in(2)})); }

constexpr Translator kTable[] = {
    {"Abs", Unary, "Abs"},
    {"Acos", Unary, "Acos"},
    {"Acosh", Unary, "Acosh"},
    {"Add", Binary, "Add"},
    {"AddN", AddN},
    {"AddV2", Binary, "Add"},
    {"Asin", Unary, "Asin"},
    {"Asinh", Unary, "Asinh"},
    {"Atan", Unary, "Atan"},
    {"Atanh", Unary, "Atanh"},
    {"BitwiseAnd", Binary, "BitwiseAnd"},
    {"BitwiseOr", Binary, "BitwiseOr"},
    {"BitwiseXor", Binary, "BitwiseXor"},
    {"Cast", Cast},
    {"Ceil", Unary, "Ceil"},
    {"CheckNumerics", Unary, "Identity"},
    {"ClipByValue", ClipByValue},
    {"Cos", Unary, "Cos"},
    {"Cosh", Unary, "Cosh"},
    {"Div", Binary, "Div"},
    {"DivNoNan", NoNan, "Div"},
    {"Elu", Unary, "Elu"},
    {"EnsureShape", Unary, "Identity"},
    {"Equal", Binary, "Equal"},
    {"Erf", Unary, "Erf"},
    {"Erfc", Erfc},
    {"Exp", Unary, "Exp"},
    {"Expm1", Expm1},
    {"Floor", Unary, "Floor"},
    {"FloorDiv", FloorDiv},
    {"FloorMod", FloorMod},
    {"Greater", Binary, "Greater"},
    {"GreaterEqual", Binary, "GreaterOrEqual"},
    {"Identity", Unary, "Identity"},
    {"Inv", Unary, "Reciprocal"},
    {"Invert", Unary, "BitwiseNot"},
    {"IsFinite", IsFinite},
    {"IsInf", Unary, "IsInf"},
    {"IsNan", Unary, "IsNaN"},
    {"LeakyRelu", LeakyRelu},
    {"Less", Binary, "Less"},
    {"LessEqual", Binary, "LessOrEqual"},
    {"Log", Unary, "Log"},
    {"Log1p", Log1p},
    {"LogicalAnd", Binary, "And"},
    {"LogicalNot", Unary, "Not"},
    {"LogicalOr", Binary, "Or"},
    {"Maximum", Binary, "Max"},
    {"Minimum", Binary, "Min"},
    {"Mod", TruncateMod},
    {"Mul", Binary, "Mul"},
    {"MulNoNan", NoNan, "Mul"},
    {"Neg", Unary, "Neg"},
    {"NotEqual", NotEqual},
    {"Pow", Binary, "Pow"},
    {"PreventGradient", Unary, "Identity"},
    {"ReadVariableOp", Unary, "Identity"},
    {"RealDiv", Binary, "Div"},
    {"Reciprocal", Unary, "Reciprocal"},
    {"Relu", Unary, "Relu"},
    {"Relu6", Relu6},
    {"Rint", Unary, "Round"},
    {"Round", Unary, "Round"},
    {"Rsqrt", Rsqrt},
    {"Select", Select},
    {"SelectV2", SelectV2},
    {"Selu", Unary, "Selu"},
    {"Sigmoid", Unary, "Sigmoid"},
    {"Sign", Unary, "Sign"},
    {"Sin", Unary, "Sin"},
    {"Sinh", Unary, "Sinh"},
    {"Snapshot", Unary, "Identity"},
    {"Softplus", Unary, "Softplus"},
    {"Softsign", Unary, "Softsign"},
    {"Sqrt", Unary, "Sqrt"},
    {"Square", Square},
    {"SquaredDifference", SquaredDifference},
    {"StopGradient", Unary, "Identity"},
    {"Sub", Binary, "Sub"},
    {"Tan", Unary, "Tan"},
    {"Tanh", Unary, "Tanh"},
    {"TruncateDiv", Binary, "Div"},
    {"TruncateMod", TruncateMod},
};

}  // namespace

std::span<const Translator> ElementwiseTranslators() { return kTable; }

}  // namespace thalweg::cli::onnx
