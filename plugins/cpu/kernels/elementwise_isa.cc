// Element-wise float arithmetic, once per instruction set. Simple functions are plain loops for the
// compiler to vectorise; trigonometric, hyperbolic and error functions are in functions_isa.cc. The
// others call Eigen's packet functions directly, not its array expressions: those hand the ends of
// an array to scalar code with other rounding, so an element would depend on where the loop was
// cut.
#include <math.h>
#include <string.h>

#include <Eigen/Core>

#if defined(__F16C__) || defined(__AVX512DQ__)
#include <immintrin.h>
#endif

#include "kernels/elementwise.h"
#include "kernels/functions.h"

namespace thalweg::cpu::THALWEG_ISA {
namespace {

namespace packet = Eigen::internal;
using Packet = packet::packet_traits<float>::type;
constexpr int kLanes = packet::packet_traits<float>::size;
constexpr float kInf = __builtin_inff();

template <auto kFunction, class Result = float>
void Map(const void* x, void* y, int64_t n) {
  auto* from = static_cast<const float*>(x);
  auto* to = static_cast<Result*>(y);
  for (int64_t i = 0; i < n; ++i) to[i] = kFunction(from[i]);
}

// The last elements are padded to a whole packet and take the same path as all others.
template <auto kFunction>
void MapPackets(const void* x, void* y, int64_t n) {
  auto* from = static_cast<const float*>(x);
  auto* to = static_cast<float*>(y);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) packet::pstoreu(to + i, kFunction(packet::ploadu<Packet>(from + i)));
  if (i == n) return;
  float rest[kLanes] = {};
  memcpy(rest, from + i, size_t(n - i) * sizeof(float));
  packet::pstoreu(rest, kFunction(packet::ploadu<Packet>(rest)));
  memcpy(to + i, rest, size_t(n - i) * sizeof(float));
}

template <auto kFunction, class Result = float>
int64_t Zip(const void* x, int64_t x_step, const void* y, int64_t y_step, void* z, int64_t n) {
  auto* a = static_cast<const float*>(x);
  auto* b = static_cast<const float*>(y);
  auto* to = static_cast<Result*>(z);
  if (x_step && y_step) {
    for (int64_t i = 0; i < n; ++i) to[i] = kFunction(a[i], b[i]);
  } else if (x_step) {
    float c = *b;
    for (int64_t i = 0; i < n; ++i) to[i] = kFunction(a[i], c);
  } else {
    float c = *a;
    for (int64_t i = 0; i < n; ++i) to[i] = kFunction(c, b[i]);
  }
  return n;
}

// The last elements take the same path as all others here too. A step of 0 repeats an element.
template <auto kFunction>
int64_t ZipPackets(const void* x, int64_t x_step, const void* y, int64_t y_step, void* z, int64_t n) {
  auto* a = static_cast<const float*>(x);
  auto* b = static_cast<const float*>(y);
  auto* to = static_cast<float*>(z);
  auto whole = [](const float* from, int64_t step, int64_t i) {
    return step ? packet::ploadu<Packet>(from + i) : packet::pset1<Packet>(*from);
  };
  auto part = [n](const float* from, int64_t step, int64_t i) {
    if (!step) return packet::pset1<Packet>(*from);
    float rest[kLanes] = {};
    memcpy(rest, from + i, size_t(n - i) * sizeof(float));
    return packet::ploadu<Packet>(rest);
  };
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) packet::pstoreu(to + i, kFunction(whole(a, x_step, i), whole(b, y_step, i)));
  if (i == n) return n;
  float rest[kLanes];
  packet::pstoreu(rest, kFunction(part(a, x_step, i), part(b, y_step, i)));
  memcpy(to + i, rest, size_t(n - i) * sizeof(float));
  return n;
}

// ---- Functions that Eigen's packet functions lack or get wrong ----

Packet Splat(float v) { return packet::pset1<Packet>(v); }
Packet KeepNan(const Packet& x, const Packet& y) { return packet::pselect(packet::pcmp_eq(x, x), y, x); }

// Returns true if any lane of a comparison is true.
bool Any(const Packet& comparison) {
#if defined(__AVX512DQ__)
  return _mm512_movepi32_mask(_mm512_castps_si512(comparison)) != 0;
#else
  return packet::predux_any(comparison);
#endif
}
Packet Outside(const Packet& x, float low, float high) {
  return packet::por(packet::pcmp_lt(x, Splat(low)), packet::pcmp_lt(Splat(high), x));
}

// Returns y, with the lanes of `wanted` computed one by one.
template <auto kFunction>
Packet Patch(const Packet& x, const Packet& y, const Packet& wanted) {
  float in[kLanes], out[kLanes];
  uint32_t want[kLanes];
  packet::pstoreu(in, x);
  packet::pstoreu(out, y);
  memcpy(want, &wanted, sizeof want);
  for (int i = 0; i < kLanes; ++i)
    if (want[i]) out[i] = kFunction(in[i]);
  return packet::ploadu<Packet>(out);
}

// Eigen clamps the argument, so results that should be denormal, 0 or infinite come out near the
// bounds of the normal numbers.
Packet Exp(const Packet& x) {
  constexpr float kZeroBelow = -104.f, kInfinityAbove = 88.7228394f;
  Packet y = KeepNan(x, packet::pexp(x));
  const Packet rare = Outside(x, -87.f, 88.f);
  if (!Any(rare)) return y;
  y = packet::pselect(packet::pcmp_lt(x, Splat(kZeroBelow)), Splat(0.f), y);
  y = packet::pselect(packet::pcmp_lt(Splat(kInfinityAbove), x), Splat(kInf), y);
  const Packet open = packet::pandnot(rare, Outside(x, kZeroBelow, kInfinityAbove));
  return Any(open) ? Patch<[](float v) { return expf(v); }>(x, y, open) : y;
}

// Eigen treats denormal arguments as the smallest normal number.
Packet Log(const Packet& x) {
  const Packet y = packet::plog(x), denormal = packet::pand(packet::pcmp_lt(Splat(0.f), x), packet::pcmp_lt(x, Splat(1.17549435e-38f)));
  return Any(denormal) ? Patch<[](float v) { return logf(v); }>(x, y, denormal) : y;
}

Packet Sigmoid(const Packet& x) {
  Packet one = Splat(1.f);
  return packet::pdiv(one, packet::padd(one, Exp(packet::pnegate(x))));
}

Packet Tanh(const Packet& x) { return KeepNan(x, packet::ptanh(x)); }

Packet Log1p(const Packet& x) { return packet::generic_plog1p(x); }

// Computes log((1 + x) / (1 - x)) / 2 of |x|, with the sign of x.
Packet Atanh(const Packet& x) {
  const Packet size = packet::pabs(x), twice = packet::padd(size, size);
  const Packet half = packet::pmul(Splat(0.5f), Log1p(packet::pdiv(twice, packet::psub(Splat(1.f), size))));
  return packet::por(half, packet::pand(x, Splat(-0.f)));
}

Packet ZeroWhere0(const Packet& x, const Packet& z) { return packet::pselect(packet::pcmp_eq(x, Splat(0.f)), Splat(0.f), z); }
Packet Xlogy(const Packet& x, const Packet& y) { return ZeroWhere0(x, packet::pmul(x, Log(y))); }
Packet Xlog1py(const Packet& x, const Packet& y) { return ZeroWhere0(x, packet::pmul(x, Log1p(y))); }

// ---- Angles: loops without branches, for the compiler to vectorise ----

// pi / 2 and pi as floats, and the remainders.
constexpr float kQuarter = 1.57079637f, kQuarterRest = -4.37113883e-8f, kHalf = 3.14159274f, kHalfRest = -8.74227766e-8f;

// The arc tangent of x in [0, 1]. The polynomials interpolate at Chebyshev's points, in x^2.
template <class V>
inline V AtanTo1(V x) {
  const V t = x * x;
  V p = 0.00148869194f * t - 0.00914462976f;
  p = p * t + 0.0263050011f;
  p = p * t - 0.048960514f;
  p = p * t + 0.0703191425f;
  p = p * t - 0.0893182678f;
  p = p * t + 0.110882616f;
  p = p * t - 0.142840038f;
  p = p * t + 0.199999493f;
  p = p * t - 0.333333331f;
  return x + x * (t * p);
}
float Atan(float x) {
  const float size = fabsf(x), inverse = 1 / size, y = AtanTo1(size > 1 ? inverse : size);
  return copysignf(size > 1 ? kQuarter - (y - kQuarterRest) : y, x);
}
// Uses packets, because with four cases to choose from the compiler falls back to branches. NaN
// passes through the ratio.
Packet Atan2(const Packet& y, const Packet& x) {
  const Packet sign = Splat(-0.f), a = packet::pabs(y), b = packet::pabs(x), steep = packet::pcmp_lt(b, a);
  const Packet most = packet::pselect(steep, a, b), least = packet::pselect(steep, b, a);
  const Packet one = packet::pand(packet::pcmp_lt(Splat(0.f), most), Splat(1.f));  // the ratio of two infinities; 0 for two zeros
  const Packet low = AtanTo1(packet::pselect(packet::pcmp_eq(least, most), one, packet::pdiv(least, most)));
  const Packet right = packet::pselect(steep, packet::psub(Splat(kQuarter), packet::psub(low, Splat(kQuarterRest))), low);
  const Packet is_left = packet::pcmp_lt(packet::por(packet::pand(x, sign), Splat(1.f)), Splat(0.f));
  const Packet angle = packet::pselect(is_left, packet::psub(Splat(kHalf), packet::psub(right, Splat(kHalfRest))), right);
  return packet::por(angle, packet::pand(y, sign));
}

// The arc sine of x in [0, 1/2]; t = x^2.
inline float AsinToHalf(float x, float t) {
  float p = 0.0336908472f;
  p = p * t + 0.0171492384f;
  p = p * t + 0.0311006627f;
  p = p * t + 0.0445994015f;
  p = p * t + 0.0750009454f;
  p = p * t + 0.166666663f;
  return x + x * (t * p);
}
// For |x| > 1/2 this uses half the angle to 1, whose sine is the root of (1 - x) / 2.
float Asin(float x) {
  const float size = fabsf(x), half = (1 - size) * 0.5f, root = sqrtf(half), square = size * size;
  const float y = AsinToHalf(size > 0.5f ? root : size, size > 0.5f ? half : square);
  return copysignf(size > 0.5f ? kQuarter - (2 * y - kQuarterRest) : y, x);
}
float Acos(float x) {
  const float size = fabsf(x), half = (1 - size) * 0.5f, root = sqrtf(half), square = size * size;
  const float y = AsinToHalf(size > 0.5f ? root : size, size > 0.5f ? half : square);
  const float middle = kQuarter - (copysignf(y, x) - kQuarterRest), end = x < 0 ? kHalf - (2 * y - kHalfRest) : 2 * y;
  return size > 0.5f ? end : middle;
}

// ---- Tables ----

constexpr UnaryKernels UnaryTable(uint32_t bytes, Load16 load, Store16 store) {
  auto map = [&](UnaryLoop loop, uint32_t cost = 1) { return UnaryKernel{loop, bytes, bytes, load ? cost + 1 : cost, load, store}; };
  auto test = [&](UnaryLoop loop) { return UnaryKernel{loop, bytes, 1, 1, load, nullptr}; };
  return {
      .abs = map(Map<[](float x) { return fabsf(x); }>),
      .neg = map(Map<[](float x) { return -x; }>),
      .sign = map(Map<[](float x) { return x < 0   ? -1.f
                                           : 0 < x ? 1.f
                                                   : x; }>),
      .square = map(Map<[](float x) { return x * x; }>),
      .sqrt = map(Map<[](float x) { return sqrtf(x); }>, 2),
      .rsqrt = map(Map<[](float x) { return 1 / sqrtf(x); }>, 3),
      .reciprocal = map(Map<[](float x) { return 1 / x; }>, 2),
      .exp = map(MapPackets<Exp>, 8),
      .expm1 = map(functions::Expm1, 4),
      .log = map(MapPackets<Log>, 8),
      .log1p = map(functions::Log1p, 5),
      .sin = map(functions::Sin, 5),
      .cos = map(functions::Cos, 5),
      .tanh = map(MapPackets<Tanh>, 8),
      .asin = map(Map<Asin>, 4),
      .acos = map(Map<Acos>, 4),
      .atan = map(Map<Atan>, 4),
      .atanh = map(MapPackets<Atanh>, 10),
      .sigmoid = map(MapPackets<Sigmoid>, 8),
      .erf = map(functions::Erf, 5),
      .erfc = map(functions::Erfc, 8),
      .floor = map(Map<[](float x) { return floorf(x); }>),
      .ceil = map(Map<[](float x) { return ceilf(x); }>),
      .round = map(Map<[](float x) { return rintf(x); }>),
      .tan = map(functions::Tan, 5),
      .sinh = map(functions::Sinh, 5),
      .cosh = map(functions::Cosh, 5),
      .asinh = map(functions::Asinh, 10),
      .acosh = map(functions::Acosh, 8),
      .erfinv = map(functions::Erfinv, 12),
      .ndtri = map(functions::Ndtri, 12),
      .is_nan = test(Map<[](float x) { return x != x; }, bool>),
      .is_inf = test(Map<[](float x) { return fabsf(x) == kInf; }, bool>),
      .is_finite = test(Map<[](float x) { return fabsf(x) < kInf; }, bool>),
      .to_int32 = UnaryKernel{functions::ToInt32, bytes, 4, 1, load, nullptr},
  };
}

float FloorMod(float x, float y) {
  float m = fmodf(x, y);
  return m != 0 && (m < 0) != (y < 0) ? m + y : m;
}

constexpr BinaryKernels BinaryTable(uint32_t bytes, Load16 load, Store16 store) {
  auto zip = [&](BinaryLoop loop, uint32_t cost = 1) { return BinaryKernel{loop, bytes, bytes, load ? cost + 1 : cost, load, store}; };
  auto test = [&](BinaryLoop loop) { return BinaryKernel{loop, bytes, 1, 1, load, nullptr}; };
  return {
      .add = zip(Zip<[](float x, float y) { return x + y; }>),
      .sub = zip(Zip<[](float x, float y) { return x - y; }>),
      .mul = zip(Zip<[](float x, float y) { return x * y; }>),
      .div = zip(Zip<[](float x, float y) { return x / y; }>, 2),
      .div_no_nan = zip(Zip<[](float x, float y) { return y == 0 ? 0.f : x / y; }>, 2),
      .floor_div = zip(Zip<[](float x, float y) { return floorf(x / y); }>, 3),
      .floor_mod = zip(Zip<FloorMod>, 40),
      .pow = zip(Zip<[](float x, float y) { return powf(x, y); }>, 40),
      // If one side is NaN, the result is NaN.
      .maximum = zip(Zip<[](float x, float y) { return y < x || x != x ? x : y; }>),
      .minimum = zip(Zip<[](float x, float y) { return x < y || x != x ? x : y; }>),
      .xlogy = zip(ZipPackets<Xlogy>, 9),
      .xlog1py = zip(ZipPackets<Xlog1py>, 12),
      .atan2 = zip(ZipPackets<Atan2>, 6),
      .squared_difference = zip(Zip<[](float x, float y) { return (x - y) * (x - y); }>),
      // Gradients take the forward result first: x is the op's y, and y is dy.
      .sqrt_grad = zip(Zip<[](float y, float dy) { return dy * 0.5f / y; }>, 2),
      .rsqrt_grad = zip(Zip<[](float y, float dy) { return dy * -0.5f * (y * y * y); }>),
      .reciprocal_grad = zip(Zip<[](float y, float dy) { return -dy * (y * y); }>),
      .tanh_grad = zip(Zip<[](float y, float dy) { return dy * (1 - y * y); }>),
      .sigmoid_grad = zip(Zip<[](float y, float dy) { return dy * y * (1 - y); }>),
      .equal = test(Zip<[](float x, float y) { return x == y; }, bool>),
      .not_equal = test(Zip<[](float x, float y) { return x != y; }, bool>),
      .less = test(Zip<[](float x, float y) { return x < y; }, bool>),
      .less_equal = test(Zip<[](float x, float y) { return x <= y; }, bool>),
      .greater = test(Zip<[](float x, float y) { return y < x; }, bool>),
      .greater_equal = test(Zip<[](float x, float y) { return y <= x; }, bool>),
  };
}

}  // namespace

// From AVX2 on, an instruction converts half. The instruction and Eigen's scalar code agree except
// in the payload of a NaN, so the last elements take the same path as all others here too.
void LoadHalf(const uint16_t* x, float* y, int64_t n) {
#if defined(__F16C__)
  auto load = [](const uint16_t* from, float* to) {
    _mm256_storeu_ps(to, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
  };
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) load(x + i, y + i);
  if (i == n) return;
  uint16_t in[8] = {};
  float out[8];
  memcpy(in, x + i, size_t(n - i) * sizeof(uint16_t));
  load(in, out);
  memcpy(y + i, out, size_t(n - i) * sizeof(float));
#else
  for (int64_t i = 0; i < n; ++i) y[i] = Eigen::half_impl::half_to_float(Eigen::half_impl::raw_uint16_to_half(x[i]));
#endif
}

void StoreHalf(const float* x, uint16_t* y, int64_t n) {
#if defined(__F16C__)
  auto store = [](const float* from, uint16_t* to) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_cvtps_ph(_mm256_loadu_ps(from), _MM_FROUND_TO_NEAREST_INT));
  };
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) store(x + i, y + i);
  if (i == n) return;
  float in[8] = {};
  uint16_t out[8];
  memcpy(in, x + i, size_t(n - i) * sizeof(float));
  store(in, out);
  memcpy(y + i, out, size_t(n - i) * sizeof(uint16_t));
#else
  for (int64_t i = 0; i < n; ++i) y[i] = Eigen::half_impl::float_to_half_rtne(x[i]).x;
#endif
}

void LoadBfloat16(const uint16_t* x, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = __builtin_bit_cast(float, uint32_t(x[i]) << 16);
}

void StoreBfloat16(const float* x, uint16_t* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    uint32_t bits = __builtin_bit_cast(uint32_t, x[i]);
    uint32_t rounded = bits + 0x7fff + ((bits >> 16) & 1), quiet_nan = bits | 0x400000;
    y[i] = uint16_t(((bits & 0x7fffffff) > 0x7f800000 ? quiet_nan : rounded) >> 16);
  }
}

const Elementwise& ElementwiseTable() {
  static constexpr Elementwise kTable = {
      UnaryTable(4, nullptr, nullptr),  UnaryTable(2, LoadHalf, StoreHalf),  UnaryTable(2, LoadBfloat16, StoreBfloat16),
      BinaryTable(4, nullptr, nullptr), BinaryTable(2, LoadHalf, StoreHalf), BinaryTable(2, LoadBfloat16, StoreBfloat16),
  };
  return kTable;
}

}  // namespace thalweg::cpu::THALWEG_ISA
