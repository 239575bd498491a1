// Element-wise functions of one number. Floating-point semantics are IEEE's and the C library's:
// NaN in, NaN out; Round rounds to nearest, ties to even; Sign keeps NaN and the sign of zero.
// Integers wrap around (Abs of the most negative integer is itself).
#include <cmath>

#include "kernels/common/arithmetic.h"
#include "kernels/common/complex.h"
#include "kernels/map.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

template <auto kFunction>
void AddMaps(tw::Plugin& p, const char* op) {
  AddMap<kFunction, 1, double, int8_t, int16_t, int32_t, int64_t>(p, op);
}

constexpr auto kAbs = [](auto x) {
  if constexpr (std::is_floating_point_v<decltype(x)>)
    return std::fabs(x);  // -0 becomes 0
  else
    return x < 0 ? Minus(decltype(x)(0), x) : x;
};
constexpr auto kNeg = [](auto x) {
  if constexpr (std::is_floating_point_v<decltype(x)>)
    return -x;
  else
    return Minus(decltype(x)(0), x);
};

void AddFloats(tw::Plugin& p) {
  struct Named {
    const char* op;
    const UnaryKernel UnaryKernels::* kernel;
  };
  using K = UnaryKernels;
  static constexpr Named kOps[] = {
      {"Abs", &K::abs},        {"Neg", &K::neg},    {"Sign", &K::sign},    {"Square", &K::square},   {"Sqrt", &K::sqrt},
      {"Rsqrt", &K::rsqrt},    {"Exp", &K::exp},    {"Expm1", &K::expm1},  {"Log", &K::log},         {"Log1p", &K::log1p},
      {"Sin", &K::sin},        {"Cos", &K::cos},    {"Tanh", &K::tanh},    {"Sigmoid", &K::sigmoid}, {"Reciprocal", &K::reciprocal},
      {"Inv", &K::reciprocal}, {"Erf", &K::erf},    {"Erfc", &K::erfc},    {"Floor", &K::floor},     {"Ceil", &K::ceil},
      {"Round", &K::round},    {"Rint", &K::round}, {"IsNan", &K::is_nan}, {"IsInf", &K::is_inf},    {"IsFinite", &K::is_finite},
  };
  const Elementwise& t = TW_CPU_FOR_ISA(DetectIsa(p.h), ElementwiseTable);
  for (const Named& o : kOps) {
    const char* result = (t.unary_float.*o.kernel).y_bytes == 1 ? "bool" : nullptr;
    AddUnary(p, o.op, "float", result ? result : "float", t.unary_float.*o.kernel);
    AddUnary(p, o.op, "half", result ? result : "half", t.unary_half.*o.kernel);
    AddUnary(p, o.op, "bfloat16", result ? result : "bfloat16", t.unary_bfloat16.*o.kernel);
  }
}

void AddDoubles(tw::Plugin& p) {
  AddMap<[](double x) { return std::sqrt(x); }, 4, double>(p, "Sqrt");
  AddMap<[](double x) { return 1 / std::sqrt(x); }, 6, double>(p, "Rsqrt");
  AddMap<[](double x) { return 1 / x; }, 3, double>(p, "Reciprocal");
  AddMap<[](double x) { return 1 / x; }, 3, double>(p, "Inv");
  AddMap<[](double x) { return std::exp(x); }, 40, double>(p, "Exp");
  AddMap<[](double x) { return std::expm1(x); }, 60, double>(p, "Expm1");
  AddMap<[](double x) { return std::log(x); }, 40, double>(p, "Log");
  AddMap<[](double x) { return std::log1p(x); }, 60, double>(p, "Log1p");
  AddMap<[](double x) { return std::sin(x); }, 60, double>(p, "Sin");
  AddMap<[](double x) { return std::cos(x); }, 60, double>(p, "Cos");
  AddMap<[](double x) { return std::tanh(x); }, 80, double>(p, "Tanh");
  AddMap<[](double x) { return 1 / (1 + std::exp(-x)); }, 50, double>(p, "Sigmoid");
  AddMap<[](double x) { return std::erf(x); }, 80, double>(p, "Erf");
  AddMap<[](double x) { return std::erfc(x); }, 80, double>(p, "Erfc");
  AddMap<[](double x) { return std::floor(x); }, 2, double>(p, "Floor");
  AddMap<[](double x) { return std::ceil(x); }, 2, double>(p, "Ceil");
  AddMap<[](double x) { return std::rint(x); }, 4, double>(p, "Round");
  AddMap<[](double x) { return std::rint(x); }, 4, double>(p, "Rint");
  AddUnary(p, "IsNan", "double", "bool", kMap<[](double x) { return x != x; }, double, bool, 1>);
  AddUnary(p, "IsInf", "double", "bool", kMap<[](double x) { return std::fabs(x) == HUGE_VAL; }, double, bool, 1>);
  AddUnary(p, "IsFinite", "double", "bool", kMap<[](double x) { return std::fabs(x) < HUGE_VAL; }, double, bool, 1>);
}

template <auto kFunction, uint32_t kCost>
void AddComplexMap(tw::Plugin& p, const char* op) {
  AddMap<kFunction, kCost, complex64, complex128>(p, op);
}

constexpr auto kConj = [](auto z) { return std::conj(z); };

void AddComplex(tw::Plugin& p) {
  AddUnary(p, "Conj", "complex64", "complex64", kMap<kConj, complex64, complex64, 2>, "input", "output");
  AddUnary(p, "Conj", "complex128", "complex128", kMap<kConj, complex128, complex128, 2>, "input", "output");
  AddComplexMap<[](auto z) { return -z; }, 2>(p, "Neg");
  AddComplexMap<[](auto z) { return z * z; }, 4>(p, "Square");
  AddComplexMap<[](auto z) { return decltype(z)(1) / z; }, 12>(p, "Reciprocal");
  AddComplexMap<[](auto z) { return decltype(z)(1) / z; }, 12>(p, "Inv");
  AddComplexMap<[](auto z) { return std::sqrt(z); }, 80>(p, "Sqrt");
  AddComplexMap<[](auto z) { return decltype(z)(1) / std::sqrt(z); }, 90>(p, "Rsqrt");
  AddComplexMap<[](auto z) { return std::exp(z); }, 120>(p, "Exp");
  AddComplexMap<[](auto z) { return Expm1(z); }, 150>(p, "Expm1");
  AddComplexMap<[](auto z) { return std::log(z); }, 120>(p, "Log");
  AddComplexMap<[](auto z) { return Log1p(z); }, 150>(p, "Log1p");
  AddComplexMap<[](auto z) { return std::sin(z); }, 150>(p, "Sin");
  AddComplexMap<[](auto z) { return std::cos(z); }, 150>(p, "Cos");
  AddComplexMap<[](auto z) { return std::tanh(z); }, 150>(p, "Tanh");
  AddComplexMap<[](auto z) { return decltype(z)(1) / (decltype(z)(1) + std::exp(-z)); }, 130>(p, "Sigmoid");
  AddComplexMap<[](auto z) { return z == decltype(z)(0) ? z : z / std::abs(z); }, 40>(p, "Sign");
}

}  // namespace

void register_unary(tw::Plugin& p) {
  AddFloats(p);
  AddDoubles(p);
  AddComplex(p);
  AddMaps<kAbs>(p, "Abs");
  AddMaps<kNeg>(p, "Neg");
  AddMaps<[](auto x) { return x < 0 ? decltype(x)(-1) : 0 < x ? decltype(x)(1) : x; }>(p, "Sign");
  AddMaps<[](auto x) { return Times(x, x); }>(p, "Square");
  AddMap<[](auto x) { return Times(x, x); }, 1, uint8_t, uint16_t, uint32_t, uint64_t>(p, "Square");
  AddMap<[](auto x) { return x; }, 1, int8_t, int16_t, int32_t, int64_t>(p, "Round");
  AddUnary(p, "LogicalNot", "bool", "bool", kMap<[](uint8_t x) { return x == 0; }, uint8_t, uint8_t, 1>);
}

}  // namespace thalweg::cpu
