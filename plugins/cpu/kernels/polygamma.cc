#include "kernels/polygamma.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <numbers>

namespace thalweg::cpu {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Digamma has its only zero above 0 here. kZeroRest is the rounding error of kZero.
constexpr double kZero = 1.4616321449683622, kZeroRest = 9.549995429965697e-17;

// digamma(x) / (x - kZero) on [1, 2] in powers of x - 1.5, highest first: a Chebyshev interpolation computed with 60 digits.
constexpr double kBetween[] = {-8.153978973309418e-05, 0.00012230983055406747, -6.11554261750751e-05,  9.173383289174792e-05,
                               -0.0002178682145501451, 0.0003268068044141764,  -0.0004599625144612576, 0.0006899717801166841,
                               -0.001042261556504223,  0.0015635679757533885,  -0.002344650082351321,  0.0035180800751066694,
                               -0.00528001782089874,   0.007927024067961237,   -0.011908215172584002,  0.017907248195969127,
                               -0.02697579684427536,   0.04076083394462657,    -0.06192213327165706,   0.09498872445283,
                               -0.14840492305391761,   0.24054248424078736,    -0.42362742128146047,   0.9510558760318328};

// The Bernoulli numbers B(2j) divided by 2j, and by (2j)!.
constexpr double kBernoulli[] = {1. / 12, -1. / 120, 1. / 252, -1. / 240, 1. / 132, -691. / 32760, 1. / 12};
constexpr double kBernoulliFactorial[] = {0.08333333333333333,   -0.001388888888888889,  3.306878306878307e-05,  -8.267195767195768e-07,
                                          2.08767569878681e-08,  -5.284190138687493e-10, 1.3382536530684679e-11, -3.3896802963225827e-13,
                                          8.586062056277845e-15, -2.174868698558062e-16, 5.5090028283602295e-18, -1.3954464685812522e-19,
                                          3.534707039629467e-21};

double DigammaFrom1To2(double x) {
  double y = kBetween[0];
  for (size_t i = 1; i < std::size(kBetween); ++i) y = y * (x - 1.5) + kBetween[i];
  return y * (x - kZero - kZeroRest);
}

// REQUIRES: x >= 10.
double DigammaFarOut(double x) {
  const double square = 1 / (x * x);
  double sum = 0;
  for (size_t i = std::size(kBernoulli); i-- > 0;) sum = (sum + kBernoulli[i]) * square;
  return std::log(x) - 0.5 / x - sum;
}

double DigammaAbove0(double x) {
  if (x >= 10) return DigammaFarOut(x);
  if (x < 1) return DigammaFrom1To2(x + 1) - 1 / x;
  double sum = 0;
  for (; x > 2; x -= 1) sum += 1 / (x - 1);
  return sum + DigammaFrom1To2(x);
}

// Returns (q / (q + k))^x, corrected for the rounding error of the quotient, which the power would
// multiply by x.
double Power(double q, int k, double x) {
  const double a = q + k, added = a - q, lost = (q - (a - added)) + (k - added), ratio = q / a;
  const double off = x * ((std::fma(-ratio, a, q) - ratio * lost) / q);
  return std::pow(ratio, x) * (1 + off + off * off / 2);
}

// Returns q^x times the sum over k >= 0 of (q + k)^-x, which neither over- nor underflows. Sums the
// first terms directly and the rest by Euler and Maclaurin. REQUIRES: x > 1, q > 0.
double ScaledZeta(double x, double q) {
  if (q > 1e15) return -1 / std::expm1(-(x - 1) / q);  // q + 1 would be q
  constexpr int kTerms = 10;
  double sum = 0;
  for (int k = kTerms; k-- > 0;) sum += Power(q, k, x);
  const double a = q + kTerms, power = Power(q, kTerms, x);
  if (power == 0) return sum;
  double rest = power * a / (x - 1) + power / 2, factor = power * x / a;
  for (size_t j = 0; j < std::size(kBernoulliFactorial); ++j) {
    rest += kBernoulliFactorial[j] * factor;
    const double n = x + 2 * double(j) + 1;
    factor *= n / a * ((n + 1) / a);
  }
  return sum + rest;
}

// REQUIRES: x > 1, q > 0. Multiplies half of the power at a time, because a factor that the sum
// enlarges must not underflow to 0 before.
double ZetaAbove0(double x, double q) {
  if (q > 1e15) return std::pow(q, 1 - x) * (ScaledZeta(x, q) / q);
  const double root = std::pow(q, -x / 2);
  return root * ScaledZeta(x, q) * root;
}

// Returns pi / tan(pi x) for x in [-1/2, 1/2], not 0. Measures from the nearer of pole and zero.
double PiCotangent(double x) {
  constexpr double kPi = std::numbers::pi;
  if (std::fabs(x) <= 0.25) return kPi / std::tan(kPi * x);
  return std::copysign(kPi * std::tan(kPi * (0.5 - std::fabs(x))), x);
}

constexpr double kLastFactorial = 170;  // the largest n whose factorial a double holds

// Returns n! / q^(n + 1) times scale for n above kLastFactorial, by Stirling's series. Corrects for
// the rounding error of n / (e q), which the power would multiply by n.
double FactorialPower(double n, double q, double scale) {
  constexpr double kE = std::numbers::e, kERest = 1.4456468917292502e-16;
  const double by = kE * q, by_rest = std::fma(kE, q, -by) + kERest * q;
  const double ratio = n / by, lost = (std::fma(-ratio, by, n) - ratio * by_rest) / n;
  const double root = std::pow(ratio, n / 2), series = (1 / 12. - (1 / 360. - 1 / (1260 * n * n)) / (n * n)) / n;
  const double rest = std::sqrt(2 * std::numbers::pi) * std::sqrt(n) / q * std::exp(std::clamp(n * lost, -1., 1.) + series) * scale;
  return root * rest * root;
}

// Returns n! times the sum over k >= 0 of (q + k)^-(n + 1), which may be finite even if its factors
// are not. REQUIRES: n >= 1, q > 0.
double FactorialZeta(double n, double q) {
  if (std::isinf(q)) return 0;
  const double scale = ScaledZeta(n + 1, q);
  if (n > kLastFactorial) return FactorialPower(n, q, scale);
  const double root = std::pow(q, -(n + 1) / 2);
  return std::tgamma(n + 1) * root * scale * root;
}

bool IsEven(double n) { return std::fmod(n, 2) == 0; }

}  // namespace

double Digamma(double x) {
  if (x > 0) return std::isinf(x) ? x : DigammaAbove0(x);
  const double from_pole = x - std::rint(x);  // in [-1/2, 1/2], exactly
  if (from_pole == 0 || std::isinf(x) || x != x) return kNan;
  return DigammaAbove0(1 - x) - PiCotangent(from_pole);
}

// For q below 0: the sum over q, q + 1, ... is the sum over all q + k, k of any sign, minus the sum
// over q - 1, q - 2, ... The sum over all q + k depends only on the distance from a pole.
double Zeta(double x, double q) {
  if (!(x >= 1) || q != q) return kNan;
  if (x == 1) return HUGE_VAL;
  if (q > 0) return std::isinf(x) ? (q > 1 ? 0 : q == 1 ? 1 : HUGE_VAL) : ZetaAbove0(x, q);
  if (q == std::floor(q)) return IsEven(x) ? HUGE_VAL : kNan;
  if (x != std::floor(x)) return kNan;
  const double sign = IsEven(x) ? 1 : -1, above = q - std::floor(q), below = std::ceil(q) - q, beyond = ZetaAbove0(x, 1 - q);
  if (above == below && sign < 0) return beyond;
  const double from_above = ZetaAbove0(x, above), from_below = sign * ZetaAbove0(x, below);
  if (std::isinf(from_above) && std::isinf(from_below)) return above < below ? from_above : from_below;
  return from_above + from_below - sign * beyond;
}

double Polygamma(double n, double x) {
  if (!(n >= 0) || n != std::floor(n) || std::isinf(n)) return kNan;
  if (n == 0) return Digamma(x);
  const double sign = IsEven(n) ? -1 : 1;
  if (x > 0) return sign * FactorialZeta(n, x);
  // Half way between two poles of odd order, the poles' contributions cancel.
  if (IsEven(n) && x - std::floor(x) == 0.5) return sign * FactorialZeta(n, 1 - x);
  return sign * Zeta(n + 1, x) * (n <= kLastFactorial ? std::tgamma(n + 1) : HUGE_VAL);
}

}  // namespace thalweg::cpu
