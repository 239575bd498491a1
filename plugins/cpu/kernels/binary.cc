// Arithmetic on two tensors that broadcast, and the gradients of unary ops, which take the forward
// result and dy. Floating-point semantics are IEEE's; NaN wins in Maximum and Minimum. Integers
// wrap around. If the quotient, remainder or power does not exist (x / 0, the most negative number
// / -1, a negative exponent), the op fails. Div truncates; FloorDiv and FloorMod round down.
#include <cmath>
#include <limits>

#include "kernels/common/types.h"
#include "kernels/register.h"
#include "kernels/zip.h"

namespace thalweg::cpu {
namespace {

constexpr auto kMul = [](auto x, auto y) { return Times(x, y); };
constexpr auto kMaximum = [](auto x, auto y) { return y < x || x != x ? x : y; };
constexpr auto kMinimum = [](auto x, auto y) { return x < y || x != x ? x : y; };
constexpr auto kSquaredDifference = [](auto x, auto y) { return Times(Minus(x, y), Minus(x, y)); };

template <class T>
bool HasQuotient(T x, T y) {
  return y != 0 && !(std::is_signed_v<T> && y == T(-1) && x == std::numeric_limits<T>::min());
}
constexpr auto kIntDiv = [](auto x, auto y, auto* z) {
  if (!HasQuotient(x, y)) return false;
  *z = static_cast<decltype(x)>(x / y);
  return true;
};
constexpr auto kIntFloorDiv = [](auto x, auto y, auto* z) {
  if (!HasQuotient(x, y)) return false;
  *z = static_cast<decltype(x)>(x / y - (x % y != 0 && (x < 0) != (y < 0)));
  return true;
};
constexpr auto kIntFloorMod = [](auto x, auto y, auto* z) {
  if (y == 0) return false;
  auto m = static_cast<decltype(x)>(HasQuotient(x, y) ? x % y : 0);
  *z = static_cast<decltype(x)>(m != 0 && (m < 0) != (y < 0) ? m + y : m);
  return true;
};
constexpr auto kIntPow = [](auto x, auto y, auto* z) {
  if (y < 0) return false;
  decltype(x) power = 1;
  for (; y > 0; y = static_cast<decltype(x)>(y >> 1), x = Times(x, x))
    if (y & 1) power = Times(power, x);
  *z = power;
  return true;
};

constexpr auto kDiv = [](double x, double y) { return x / y; };
constexpr auto kDivNoNan = [](double x, double y) { return y == 0 ? 0.0 : x / y; };
constexpr auto kFloorDiv = [](double x, double y) { return std::floor(x / y); };
constexpr auto kFloorMod = [](double x, double y) {
  double m = std::fmod(x, y);
  return m != 0 && (m < 0) != (y < 0) ? m + y : m;
};
constexpr auto kPow = [](double x, double y) { return std::pow(x, y); };
constexpr auto kSqrtGrad = [](double y, double dy) { return dy * 0.5 / y; };
constexpr auto kRsqrtGrad = [](double y, double dy) { return dy * -0.5 * (y * y * y); };
constexpr auto kReciprocalGrad = [](double y, double dy) { return -dy * (y * y); };
constexpr auto kTanhGrad = [](double y, double dy) { return dy * (1 - y * y); };
constexpr auto kSigmoidGrad = [](double y, double dy) { return dy * y * (1 - y); };

template <auto kFunction, uint32_t kCost>
void AddWrapping(tw::Plugin& p, std::string_view op) {
  AddZip<kFunction, kCost, double, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>(p, op);
}
template <auto kFunction, uint32_t kCost>
void AddDividing(tw::Plugin& p, std::string_view op) {
  AddPartialZip<kFunction, kCost, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>(p, op);
}

void AddFloats(tw::Plugin& p) {
  const Elementwise& t = TW_CPU_FOR_ISA(DetectIsa(p.h), ElementwiseTable);
  using K = BinaryKernels;
  AddSmallFloats(p, "Add", t, &K::add);
  AddSmallFloats(p, "AddV2", t, &K::add);
  AddSmallFloats(p, "Sub", t, &K::sub);
  AddSmallFloats(p, "Mul", t, &K::mul);
  AddSmallFloats(p, "Div", t, &K::div);
  AddSmallFloats(p, "RealDiv", t, &K::div);
  AddSmallFloats(p, "DivNoNan", t, &K::div_no_nan);
  AddSmallFloats(p, "FloorDiv", t, &K::floor_div);
  AddSmallFloats(p, "FloorMod", t, &K::floor_mod);
  AddSmallFloats(p, "Pow", t, &K::pow);
  AddSmallFloats(p, "Maximum", t, &K::maximum);
  AddSmallFloats(p, "Minimum", t, &K::minimum);
  AddSmallFloats(p, "SquaredDifference", t, &K::squared_difference);
  AddSmallFloats(p, "SqrtGrad", t, &K::sqrt_grad);
  AddSmallFloats(p, "RsqrtGrad", t, &K::rsqrt_grad);
  AddSmallFloats(p, "ReciprocalGrad", t, &K::reciprocal_grad);
  AddSmallFloats(p, "InvGrad", t, &K::reciprocal_grad);
  AddSmallFloats(p, "TanhGrad", t, &K::tanh_grad);
  AddSmallFloats(p, "SigmoidGrad", t, &K::sigmoid_grad);
}

void AddDoubles(tw::Plugin& p) {
  AddZip<kDiv, 2, double>(p, "Div");
  AddZip<kDiv, 2, double>(p, "RealDiv");
  AddZip<kDivNoNan, 2, double>(p, "DivNoNan");
  AddZip<kFloorDiv, 4, double>(p, "FloorDiv");
  AddZip<kFloorMod, 40, double>(p, "FloorMod");
  AddZip<kPow, 60, double>(p, "Pow");
  AddZip<kSqrtGrad, 4, double>(p, "SqrtGrad");
  AddZip<kRsqrtGrad, 2, double>(p, "RsqrtGrad");
  AddZip<kReciprocalGrad, 2, double>(p, "ReciprocalGrad");
  AddZip<kReciprocalGrad, 2, double>(p, "InvGrad");
  AddZip<kTanhGrad, 2, double>(p, "TanhGrad");
  AddZip<kSigmoidGrad, 2, double>(p, "SigmoidGrad");
}

template <auto kFunction, uint32_t kCost>
void AddComplexZip(tw::Plugin& p, std::string_view op) {
  AddZip<kFunction, kCost, complex64, complex128>(p, op);
}

// The gradients conjugate the same arguments as TensorFlow's; the documentation of each op names
// them.
void AddComplex(tw::Plugin& p) {
  constexpr auto kDivide = [](auto x, auto y) { return x / y; };
  AddComplexZip<kAdd, 2>(p, "Add");
  AddComplexZip<kAdd, 2>(p, "AddV2");
  AddComplexZip<kSub, 2>(p, "Sub");
  AddComplexZip<kMul, 4>(p, "Mul");
  AddComplexZip<kDivide, 12>(p, "Div");
  AddComplexZip<kDivide, 12>(p, "RealDiv");
  AddComplexZip<[](auto x, auto y) { return y == decltype(y)(0) ? decltype(x)(0) : x / y; }, 12>(p, "DivNoNan");
  AddComplexZip<[](auto x, auto y) { return std::pow(x, y); }, 250>(p, "Pow");
  AddComplexZip<[](auto x, auto y) { return decltype(x)(std::norm(x - y)); }, 4>(p, "SquaredDifference");
  AddComplexZip<[](auto y, auto dy) { return dy / (std::conj(y) + std::conj(y)); }, 14>(p, "SqrtGrad");
  AddComplexZip<[](auto y, auto dy) { return dy * std::conj(y * y * y) * decltype(y)(-0.5); }, 20>(p, "RsqrtGrad");
  for (const char* op : {"ReciprocalGrad", "InvGrad"})
    AddComplexZip<[](auto y, auto dy) { return -dy * (std::conj(y) * std::conj(y)); }, 8>(p, op);
  AddComplexZip<[](auto y, auto dy) { return dy * (decltype(y)(1) - y * y); }, 8>(p, "TanhGrad");
  AddComplexZip<[](auto y, auto dy) { return dy * y * (decltype(y)(1) - y); }, 8>(p, "SigmoidGrad");
}

}  // namespace

void register_binary(tw::Plugin& p) {
  AddFloats(p);
  AddDoubles(p);
  AddComplex(p);
  AddWrapping<kAdd, 1>(p, "Add");
  AddWrapping<kAdd, 1>(p, "AddV2");
  AddWrapping<kSub, 1>(p, "Sub");
  AddWrapping<kMul, 1>(p, "Mul");
  AddWrapping<kMaximum, 1>(p, "Maximum");
  AddWrapping<kMinimum, 1>(p, "Minimum");
  AddZip<kSquaredDifference, 1, double, int32_t, int64_t>(p, "SquaredDifference");
  AddDividing<kIntDiv, 8>(p, "Div");
  AddDividing<kIntFloorDiv, 12>(p, "FloorDiv");
  AddDividing<kIntFloorMod, 12>(p, "FloorMod");
  AddPartialZip<kIntPow, 20, int8_t, int16_t, int32_t, int64_t>(p, "Pow");
}

}  // namespace thalweg::cpu
