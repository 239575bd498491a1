// Trigonometric, hyperbolic and error functions of floats: loops without branches in double, for
// the compiler to vectorise. The polynomials for exponentials, logarithms and angles are Taylor's.
// The others interpolate at Chebyshev's points, computed with 40 digits, with the highest power
// first. Their truncation error is below 4e-9 of the result, a twentieth of a unit in a float's
// last place.
#include <math.h>
#include <string.h>

#include "kernels/functions.h"

namespace thalweg::cpu::THALWEG_ISA::functions {
namespace {

constexpr double kInf = __builtin_inf(), kNan = __builtin_nan("");
constexpr double kRounder = 0x1.8p52;  // added and subtracted again, it rounds to an integer, which is in the low bits in between
constexpr double kTiny = 0x1p-30;      // below it, functions with slope 1 at 0 equal their argument, including the sign of zero

inline uint64_t Bits(double x) { return __builtin_bit_cast(uint64_t, x); }
inline double FromBits(uint64_t bits) { return __builtin_bit_cast(double, bits); }

template <int kCount>
inline double Polynomial(const double (&coefficients)[kCount], double x) {
  double p = coefficients[0];
  for (int i = 1; i < kCount; ++i) p = p * x + coefficients[i];
  return p;
}

// ---- Exponentials and logarithms ----

// exp(x) - 1 = (scale - 1) + scale * rest for x between -700 and 700; beyond these bounds, the
// value at the bound.
struct Power {
  double scale, rest;
};
inline Power PowerOf(double x) {
  constexpr double kTaylor[] = {1 / 362880., 1 / 40320., 1 / 5040., 1 / 720., 1 / 120., 1 / 24., 1 / 6., 0.5, 1};
  x = x < -700 ? -700 : x;
  x = x > 700 ? 700 : x;
  const double shifted = x * 1.4426950408889634 + kRounder, n = shifted - kRounder;
  const double r = (x - n * 0x1.62e42feep-1) - n * 1.9082149292705877e-10;
  return {FromBits((Bits(shifted) << 52) + (uint64_t{1023} << 52)), r * Polynomial(kTaylor, r)};
}
inline double ExpOf(double x) {
  const Power e = PowerOf(x);
  return e.scale + e.scale * e.rest;
}
inline double Expm1Of(double x) {
  const Power e = PowerOf(x);
  const double y = (e.scale - 1) + e.scale * e.rest;
  return fabs(x) < kTiny ? x : y;
}

// Returns the logarithm of a normal number above 0; the result for other arguments is unspecified.
inline double LogOfNormal(double x) {
  constexpr double kSeries[] = {2 / 15., 2 / 13., 2 / 11., 2 / 9., 2 / 7., 2 / 5., 2 / 3., 2};
  constexpr uint64_t kRoot = 0x3fe6a09e00000000, kMantissa = 0xfffffffffffff;  // about sqrt(1/2)
  const uint64_t above = Bits(x) - kRoot + (uint64_t{1024} << 52);             // biased: the exponent counts from 1024
  const double exponent = FromBits((above >> 52) | 0x4330000000000000) - (0x1p52 + 1024);
  const double m = FromBits((above & kMantissa) + kRoot) - 1, s = m / (2 + m);
  return s * Polynomial(kSeries, s * s) + exponent * 0.69314718055994531;
}
inline double Log1pOf(double x) {
  const double u = 1 + x, y = LogOfNormal(u) + (x - (u - 1)) / u;
  const double inside = u > 0 ? (x < kInf ? y : x) : (u == 0 ? -kInf : kNan);
  return fabs(x) < kTiny ? x : inside;
}

inline double SinhOf(double x) {
  const double e = Expm1Of(fabs(x));
  return copysign((e + e / (e + 1)) * 0.5, x);
}
inline double CoshOf(double x) {
  const double e = ExpOf(fabs(x));
  return (e + 1 / e) * 0.5;
}
inline double AsinhOf(double x) {
  const double size = fabs(x), square = size * size, y = Log1pOf(size + square / (1 + sqrt(1 + square)));
  return size < kInf ? copysign(y, x) : x;
}
inline double AcoshOf(double x) {
  const double t = x - 1, y = Log1pOf(t + sqrt(t * (t + 2)));
  return x >= 1 ? y : kNan;
}

// ---- Angles ----

constexpr float kMostTurns = 1e6f;  // larger arguments need more digits of pi than there are below

// The sine and cosine of the reduced angle, and the quarter turns to add. REQUIRES: |x| <=
// kMostTurns.
struct Angle {
  double sine, cosine;
  uint64_t quarters;
};
inline Angle AngleOf(double x) {
  constexpr double kSine[] = {-1 / 39916800., 1 / 362880., -1 / 5040., 1 / 120., -1 / 6.};
  constexpr double kCosine[] = {1 / 479001600., -1 / 3628800., 1 / 40320., -1 / 720., 1 / 24., -0.5};
  const double shifted = x * 0.63661977236758138 + kRounder, n = shifted - kRounder;
  const double r = (x - n * 1.57079632673412561417) - n * 6.07710050650619224932e-11, square = r * r;
  return {r + r * (square * Polynomial(kSine, square)), 1 + square * Polynomial(kCosine, square), Bits(shifted)};
}
inline double Turned(double x, uint64_t quarters) { return FromBits(Bits(x) ^ ((quarters & 2) << 62)); }
inline double SinOf(double x) {
  const Angle a = AngleOf(x);
  return fabs(x) < 1e-5 ? x : Turned(a.quarters & 1 ? a.cosine : a.sine, a.quarters);
}
inline double CosOf(double x) {
  const Angle a = AngleOf(x);
  return Turned(a.quarters & 1 ? a.sine : a.cosine, a.quarters + 1 - (~a.quarters & 1));
}
inline double TanOf(double x) {
  const Angle a = AngleOf(x);
  const double y = a.quarters & 1 ? -a.cosine / a.sine : a.sine / a.cosine;
  return fabs(x) < 1e-5 ? x : y;
}

// ---- The error function ----

inline double ErfOf(double x) {
  constexpr double kNear[] = {-9.6670445714869964e-6, 7.8824934255861602e-5, -0.00056118125378561909, 0.0034801918499342385,
                              -0.018283884897697936,  0.079409990889823251,  -0.2810721780422423,     0.96546873863756906};
  constexpr double kFar[] = {-3.7010294586574444e-7, 8.9343411082759764e-7,  3.6213872665042054e-6,   -1.5745340234869689e-5,
                             7.2204306874360517e-6,  8.118151327887047e-5,   -0.00025250234594417607, 0.00025860507679333207,
                             0.00054368475237343096, -0.002797455525194225,  0.0061169890496881087,   -0.008622641810899186,
                             0.0083501280629628615,  -0.0054456833175561208, 0.0021782835332555149,   0.99959304750795052};
  const double size = fabs(x), bounded = size > 4 ? 4 : size;
  const double near = x * Polynomial(kNear, x * x - 0.5), far = Polynomial(kFar, bounded - 2.5);
  return size < 1 ? near : copysign(far, x);
}

// Returns exp(-x * x) * t * p(t) with t = 1 / (1 + x / 2), for x between 0 and 10.4. Beyond 10.4 a
// float result is 0.
inline double ErfcOf(double x) {
  constexpr double kTail[] = {-0.031954343536449729, 0.033038799210627934, 0.031822803198797703,  -0.073033220711583848,
                              0.0011413147734756758, 0.11386520831395204,  -0.050986886472176051, -0.20350410476773112,
                              0.084616124996656488,  0.58701795840788843,  0.77977622047453979,   0.56991155963163355};
  const double size = fabs(x), bounded = size > 10.4 ? 10.4 : size, t = 2 / (2 + bounded);
  const double y = ExpOf(-bounded * bounded) * (t * Polynomial(kTail, t - 0.58064516129032258));
  return x < 0 ? 2 - y : y;
}

// Returns erfinv(x) / x for w = -log(1 - x * x): by w below 6.25, by its root s below 16, and up to
// the largest w of a float.
inline double ErfInverseNear(double w) {
  constexpr double kNear[] = {-1.2570814414523687e-11, 5.6882164791170869e-12,  1.0363882341451174e-9,  -4.7527456191519948e-9,
                              -2.895896037948332e-8,   4.2698513895053386e-7,   -1.3658217507589213e-6, -1.3892141245923011e-5,
                              0.00018673466051691628,  -0.00074069103254301951, -0.006033671032285515,  0.24015817844735165,
                              1.6536545626831027};
  return Polynomial(kNear, w - 3.125);
}
inline double ErfInverseFar(double s) {
  constexpr double kFar[] = {6.2936101312404149e-5, -1.1535213944047169e-5, -0.00034830476718137803, 0.00086498733851911726,
                             -0.001418897197737784, 0.0020959724494861026,  -0.0032929625186188207,  0.0048441874441946782,
                             1.0057691216011602,    3.1341615245732917};
  return Polynomial(kFar, s - 3.3);
}
inline double ErfInverseFarther(double s) {
  constexpr double kFarther[] = {-87.919711731664322, 41.438406213241179,    -8.8634278110593338,  2.9102173951820191, -1.5329525013264888,
                                 0.90304235509553623, -0.083059666680734164, -0.19899017418497604, 0.97528795632457509};
  return s * Polynomial(kFarther, 1 / s - 0.17354368932038835);
}

// ---- Loops ----

template <auto kFunction>
inline void Map(const void* x, void* y, int64_t n) {
  auto* from = static_cast<const float*>(x);
  auto* to = static_cast<float*>(y);
  for (int64_t i = 0; i < n; ++i) to[i] = float(kFunction(double(from[i])));
}

// Does the same, but calls the C library for large arguments. The other arguments are computed as
// if there were no large ones.
template <auto kFunction, auto kLibrary>
inline void MapAngles(const void* x, void* y, int64_t n) {
  constexpr int64_t kRun = 256;
  auto* from = static_cast<const float*>(x);
  auto* to = static_cast<float*>(y);
  float run[kRun];
  for (int64_t first = 0; first < n; first += kRun) {
    const int64_t count = n - first < kRun ? n - first : kRun;
    const float* in = from + first;
    int large = 0;
    for (int64_t i = 0; i < count; ++i) large |= !(fabsf(in[i]) <= kMostTurns);
    Map<kFunction>(in, run, count);
    for (int64_t i = 0; large && i < count; ++i)
      if (!(fabsf(in[i]) <= kMostTurns)) run[i] = kLibrary(in[i]);
    memcpy(to + first, run, size_t(count) * sizeof(float));
  }
}

// Computes the value with erf(value) = odd(x), times `scale`; rest(x) is 1 - odd(x) * odd(x). Uses
// several loops, because the compiler turns a choice among polynomials into branches.
template <auto kOdd, auto kRest>
inline void MapErfInverse(const void* x, void* y, int64_t n, double scale) {
  constexpr int64_t kRun = 256;
  auto* from = static_cast<const float*>(x);
  auto* to = static_cast<float*>(y);
  double w[kRun], s[kRun], near[kRun], far[kRun];
  for (int64_t first = 0; first < n; first += kRun) {
    const int64_t count = n - first < kRun ? n - first : kRun;
    const float* in = from + first;
    for (int64_t i = 0; i < count; ++i) w[i] = -LogOfNormal(kRest(in[i]));
    for (int64_t i = 0; i < count; ++i) s[i] = sqrt(w[i]);
    for (int64_t i = 0; i < count; ++i) near[i] = ErfInverseNear(w[i]);
    for (int64_t i = 0; i < count; ++i) far[i] = ErfInverseFar(s[i]);
    for (int64_t i = 0; i < count; ++i) s[i] = ErfInverseFarther(s[i]);
    for (int64_t i = 0; i < count; ++i) near[i] = w[i] < 6.25 ? near[i] : w[i] < 16 ? far[i] : s[i];
    for (int64_t i = 0; i < count; ++i) {
      const double odd = kOdd(in[i]), rest = kRest(in[i]), found = scale * odd * near[i], end = rest == 0 ? copysign(kInf, odd) : kNan;
      to[first + i] = float(rest > 0 ? found : end);
    }
  }
}

}  // namespace

void Sin(const void* x, void* y, int64_t n) {
  MapAngles<SinOf, [](float v) { return sinf(v); }>(x, y, n);
}
void Cos(const void* x, void* y, int64_t n) {
  MapAngles<CosOf, [](float v) { return cosf(v); }>(x, y, n);
}
void Tan(const void* x, void* y, int64_t n) {
  MapAngles<TanOf, [](float v) { return tanf(v); }>(x, y, n);
}
void Expm1(const void* x, void* y, int64_t n) { Map<Expm1Of>(x, y, n); }
void Sinh(const void* x, void* y, int64_t n) { Map<SinhOf>(x, y, n); }
void Cosh(const void* x, void* y, int64_t n) { Map<CoshOf>(x, y, n); }
void Log1p(const void* x, void* y, int64_t n) { Map<Log1pOf>(x, y, n); }
void Asinh(const void* x, void* y, int64_t n) { Map<AsinhOf>(x, y, n); }
void Acosh(const void* x, void* y, int64_t n) { Map<AcoshOf>(x, y, n); }
void Erf(const void* x, void* y, int64_t n) { Map<ErfOf>(x, y, n); }
void Erfc(const void* x, void* y, int64_t n) { Map<ErfcOf>(x, y, n); }
void Erfinv(const void* x, void* y, int64_t n) {
  MapErfInverse<[](double v) { return v; }, [](double v) { return (1 - v) * (1 + v); }>(x, y, n, 1);
}
// Computes the argument below which the normal probability is x.
void Ndtri(const void* x, void* y, int64_t n) {
  MapErfInverse<[](double v) { return 2 * v - 1; }, [](double v) { return 4 * v * (1 - v); }>(x, y, n, 1.4142135623730951);
}

void ToInt32(const void* x, void* y, int64_t n) {
  auto* from = static_cast<const float*>(x);
  auto* to = static_cast<int32_t*>(y);
  for (int64_t i = 0; i < n; ++i) {
    const float v = from[i], above = v < -0x1p31f ? -0x1p31f : v, inside = above < 0x1p31f ? above : 0x1.fffffep30f;
    const int32_t number = v < 0x1p31f ? int32_t(inside) : INT32_MAX;
    to[i] = v == v ? number : 0;
  }
}

}  // namespace thalweg::cpu::THALWEG_ISA::functions
