// Three ways lead to the incomplete functions: power series and continued fractions (DLMF 8.7.1,
// 8.9.2, 8.17.22) for moderate parameters, and quadrature for large ones, where the former would need
// too many terms. The quadrature runs over log(t), or log(t / (1 - t)), in which the integrands are
// log-concave: away from the point x, a few panels hold all of the integral.
#include "kernels/incomplete_functions.h"

#include <math.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <numbers>

namespace thalweg::cpu {
namespace {

using Real = long double;

constexpr Real kEpsilon = std::numeric_limits<Real>::epsilon();
constexpr Real kPi = std::numbers::pi_v<Real>, kEuler = std::numbers::egamma_v<Real>;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
// Below, exp(u) times a parameter changes nothing of an integrand.
constexpr Real kNothing = 1e-22L;

// zeta(k) - 1 for k = 2, 3, ..., from the Euler-Maclaurin formula with 60 digits.
constexpr Real kZetaLess1[] = {
    6.4493406684822643647242e-1L,  2.0205690315959428539974e-1L,  8.2323233711138191516004e-2L,  3.6927755143369926331365e-2L,
    1.7343061984449139714518e-2L,  8.3492773819228268397975e-3L,  4.0773561979443393786852e-3L,  2.0083928260822144178528e-3L,
    9.9457512781808533714596e-4L,  4.9418860411946455870228e-4L,  2.4608655330804829863800e-4L,  1.2271334757848914675184e-4L,
    6.1248135058704829258545e-5L,  3.0588236307020493551729e-5L,  1.5282259408651871732571e-5L,  7.6371976378997622736003e-6L,
    3.8172932649998398564616e-6L,  1.9082127165539389256570e-6L,  9.5396203387279611315204e-7L,  4.7693298678780646311672e-7L,
    2.3845050272773299000365e-7L,  1.1921992596531107306779e-7L,  5.9608189051259479612440e-8L,  2.9803503514652280186064e-8L,
    1.4901554828365041234659e-8L,  7.4507117898354294919810e-9L,  3.7253340247884570548192e-9L,  1.8626597235130490064039e-9L,
    9.3132743241966818287176e-10L, 4.6566290650337840729892e-10L, 2.3283118336765054920015e-10L, 1.1641550172700519775930e-10L};

// The positive nodes of Gauss and Legendre's rule of 16 points on [-1, 1], and their weights.
constexpr Real kNodes[] = {0.9894009349916499325962L, 0.9445750230732325760780L, 0.8656312023878317438805L, 0.7554044083550030338951L,
                           0.6178762444026437484467L, 0.4580167776572273863424L, 0.2816035507792589132305L, 0.0950125098376374401853L};
constexpr Real kWeights[] = {0.0271524594117540948518L, 0.0622535239386478928628L, 0.0951585116824927848099L, 0.1246289712555338720525L,
                             0.1495959888165767320815L, 0.1691565193950025381893L, 0.1826034150449235888668L, 0.1894506104550684962854L};

// Returns m - log(1 + m).
Real LogGap(Real m) {
  if (fabsl(m) > 0.5L) return m - log1pl(m);
  const Real r = m / (2 + m), square = r * r;
  Real power = r * square, sum = 0;
  for (int k = 3; k < 100; k += 2, power *= square) {
    const Real term = power / k;
    sum += term;
    if (fabsl(term) <= fabsl(sum) * kEpsilon) break;
  }
  return m * r - 2 * sum;
}

// Returns exp(s) - 1 - s.
Real ExpGap(Real s) {
  if (fabsl(s) > 0.5L) return expm1l(s) - s;
  Real term = s * s / 2, sum = 0;
  for (int k = 3; fabsl(term) > fabsl(sum) * kEpsilon; ++k) {
    sum += term;
    term *= s / k;
  }
  return sum;
}

// Returns log(gamma(1 + a)). REQUIRES: a >= 0.
Real LogGamma1(Real a) {
  int sign;
  if (a >= 0.5L) return lgammal_r(1 + a, &sign);
  Real power = a, sum = 0;
  for (size_t k = 0; k < std::size(kZetaLess1); ++k) {
    power *= -a;
    sum -= kZetaLess1[k] * power / Real(k + 2);
  }
  return sum + a * (1 - kEuler) - log1pl(a);
}

// Returns log(gamma(a)) - ((a - 1/2) log(a) - a + log(2 pi) / 2): the rest of Stirling's formula.
Real Stirling(Real a) {
  if (a < 20) {
    int sign;
    const Real log_gamma = a < 0.5L ? LogGamma1(a) - logl(a) : lgammal_r(a, &sign);
    return log_gamma - ((a - 0.5L) * logl(a) - a + logl(2 * kPi) / 2);
  }
  constexpr Real kTerms[] = {1 / 12.0L,        -1 / 360.0L, 1 / 1260.0L,       -1 / 1680.0L,      1 / 1188.0L,
                             -691 / 360360.0L, 1 / 156.0L,  -3617 / 122400.0L, 43867 / 244188.0L, -174611 / 125400.0L};
  const Real square = 1 / (a * a);
  Real sum = 0;
  for (size_t k = std::size(kTerms); k-- > 0;) sum = sum * square + kTerms[k];
  return sum / a;
}

// Returns log(y) - digamma(a).
Real LogLessDigamma(Real y, Real a) {
  Real rest = 0, far = a;
  for (; far < 20; far += 1) rest += 1 / far;
  constexpr Real kTerms[] = {1 / 12.0L, -1 / 120.0L, 1 / 252.0L, -1 / 240.0L, 1 / 132.0L, -691 / 32760.0L, 1 / 12.0L, -3617 / 8160.0L};
  const Real square = 1 / (far * far);
  Real sum = 0;
  for (size_t k = std::size(kTerms); k-- > 0;) sum = (sum + kTerms[k]) * square;
  const Real m = (y - far) / far;
  return (fabsl(m) > 0.5L ? logl(y / far) : log1pl(m)) + 1 / (2 * far) + sum + rest;
}

// The integral of weight(s) exp(f(s)) from 0 to infinity, or to -infinity if side is -1. F has
// log(s), the logarithm f(s), with f(0) = 0; slope(s) and bend(s), its first derivative and minus the
// second; and reach(s, side), the largest step from s over which f is like a polynomial.
template <class F, class Weight>
Real Integrate(const F& f, int side, const Weight& weight) {
  constexpr int kMostPanels = 100000;  // far more than any finite parameters need
  Real sum = 0, at = 0;
  for (int panel = 0; panel < kMostPanels; ++panel) {
    const Real slope = side * f.slope(at);
    const Real width = std::min(4 / (fabsl(slope) + sqrtl(slope * slope + 4 * f.bend(at))), f.reach(at, side));
    const Real half = width / 2, middle = at + side * half;
    Real part = 0;
    for (size_t k = 0; k < std::size(kNodes); ++k) {
      const Real before = middle - half * kNodes[k], after = middle + half * kNodes[k];
      part += kWeights[k] * (weight(before) * expl(f.log(before)) + weight(after) * expl(f.log(after)));
    }
    sum += part * half;
    at += side * width;
    if (side * f.slope(at) < 0 && fabsl(part * half) <= fabsl(sum) * (kEpsilon / 16)) break;
  }
  return sum;
}

// ---- Gamma ----

// Returns x^a exp(-x) / gamma(a + 1).
Real GammaPeak(Real a, Real x) {
  if (a < 20) return expl(a * logl(x) - x - LogGamma1(a));
  const Real m = (x - a) / a;
  const Real power = fabsl(m) > 0.5L ? a * logl(x / a) + (a - x) : -a * LogGap(m);
  return expl(power - Stirling(a)) / sqrtl(2 * kPi * a);
}

// t^a exp(-t) in t = x exp(s), over its value at x.
struct GammaTail {
  Real a, x;
  Real log(Real s) const { return (a - x) * s - x * ExpGap(s); }
  Real slope(Real s) const { return a - x * expl(s); }
  Real bend(Real s) const { return x * expl(s); }
  Real reach(Real s, int side) const {
    const Real t = x * expl(s);
    if (t < kNothing) return side < 0 ? std::numeric_limits<Real>::infinity() : std::max<Real>(1, logl(kNothing / t));
    return 1;
  }
};

Real GammaSeries(Real a, Real x) {
  Real term = 1, sum = 1;
  for (Real k = 1; term > sum * kEpsilon / 4; k += 1) {
    term *= x / (a + k);
    sum += term;
  }
  return sum;
}

// Returns the factor of x^a exp(-x) / gamma(a) in Q, by Lentz's method. REQUIRES: x > 1, x >= a.
Real GammaFraction(Real a, Real x) {
  Real b = x + 1 - a, d = 1 / b, c = 1 / kEpsilon / kEpsilon, product = d;
  for (Real i = 1; i < 100000; i += 1) {
    const Real numerator = -i * (i - a);
    b += 2;
    d = numerator * d + b;
    c = b + numerator / c;
    if (d == 0) d = kEpsilon;
    if (c == 0) c = kEpsilon;
    d = 1 / d;
    product *= d * c;
    if (fabsl(d * c - 1) < 2 * kEpsilon) break;
  }
  return product;
}

// Returns Q for small a and x, where 1 - P would cancel: 1 - x^a / gamma(a + 1) and the rest of the
// alternating series.
Real GammaSmall(Real a, Real x) {
  const Real log_power = a * logl(x) - LogGamma1(a);
  Real term = 1, sum = 0;
  for (Real k = 1; k < 200; k += 1) {
    term *= -x / k;
    const Real part = term / (a + k);
    sum += part;
    if (fabsl(part) <= fabsl(sum) * kEpsilon) break;
  }
  return -expm1l(log_power) - expl(log_power) * a * sum;
}

constexpr double kLargeA = 200;

// Returns P if x is below a, else Q; both by quadrature.
Real GammaNearTail(double a, double x) {
  const Real peak = GammaPeak(a, x);
  if (peak == 0) return 0;
  return peak * a * fabsl(Integrate(GammaTail{a, x}, x < a ? -1 : 1, [](Real) { return Real(1); }));
}

// Handles the arguments without a choice of method: true if *result is the value of P.
bool GammaEdge(double a, double x, double* result) {
  if (isnan(a) || isnan(x) || x < 0 || (a <= 0 && x != 0) || (isinf(a) && isinf(x)))
    *result = kNan;
  else if (x == 0 || isinf(a))
    *result = 0;
  else if (isinf(x))
    *result = 1;
  else
    return false;
  return true;
}

// ---- Beta ----

// Parameters of I(a, b, x), with y = 1 - x.
struct BetaPoint {
  Real a, b, x, y;
  BetaPoint Turned() const { return {b, a, y, x}; }
  // Returns a y - b x, to the last bit although the products cancel. One of x and y, and a and b, are
  // doubles.
  Real Lean() const {
    const Real p = a * y, q = b * x;
    return (p - q) + (fmal(a, y, -p) - fmal(b, x, -q));
  }
};

// Returns x^a y^b over the beta function of a and b.
Real BetaPeak(const BetaPoint& p) {
  const Real lean = p.Lean(), whole = p.a + p.b;
  const auto power = [&](Real a, Real x, Real m) {  // a log(x (a + b) / a) without the part that cancels in the sum of both
    return fabsl(m) > 0.5L ? a * (logl(x) - logl(a / whole) - m) : -a * LogGap(m);
  };
  const Real powers = power(p.a, p.x, -lean / p.a) + power(p.b, p.y, lean / p.b);
  return sqrtl(p.a / whole * p.b / (2 * kPi)) * expl(powers + Stirling(whole) - Stirling(p.a) - Stirling(p.b));
}

// t^a (1 - t)^b in log(t / (1 - t)) = log(x / y) + s, over its value at x. REQUIRES: x <= y.
struct BetaTail {
  BetaPoint p;
  Real lean;
  explicit BetaTail(const BetaPoint& point) : p(point), lean(point.Lean()) {}
  Real log(Real s) const {
    const Real whole = p.a + p.b;
    if (s > 0.5L) return -p.b * s - whole * logl(p.x + p.y * expl(-s));  // exp(s) might overflow
    const Real part = p.x * expm1l(s);
    return s < -0.5L ? p.a * s - whole * log1pl(part) : lean * s - whole * (p.x * ExpGap(s) - LogGap(part));
  }
  Real t(Real s) const { return p.x / (p.x + p.y * expl(-s)); }
  Real rest(Real s) const { return p.y / (p.y + p.x * expl(s)); }
  Real slope(Real s) const { return s == 0 ? lean : p.a * rest(s) - p.b * t(s); }
  Real bend(Real s) const { return (p.a + p.b) * t(s) * rest(s); }
  Real reach(Real s, int side) const {
    const Real low = (p.a + p.b) * t(s), high = (p.a + p.b) * rest(s);
    const Real gone = side < 0 ? low : high, coming = side < 0 ? high : low;
    if (gone < kNothing) return std::numeric_limits<Real>::infinity();
    return coming < kNothing ? std::max<Real>(1, logl(kNothing / coming)) : 1;
  }
};

// Returns I if side is -1, else 1 - I, by quadrature.
Real BetaByTail(const BetaPoint& p, int side) {
  if (p.x > p.y) return BetaByTail(p.Turned(), -side);
  const Real peak = BetaPeak(p);
  if (peak == 0) return 0;
  return peak * fabsl(Integrate(BetaTail(p), side, [](Real) { return Real(1); }));
}

// Returns I by the continued fraction, which converges quickly for x < (a + 1) / (a + b + 2).
Real BetaByFraction(const BetaPoint& p) {
  const Real whole = p.a + p.b;
  Real c = 1, d = 1 - whole * p.x / (p.a + 1);
  if (d == 0) d = kEpsilon;
  d = 1 / d;
  Real product = d;
  for (Real m = 1; m < 100000; m += 1) {
    const Real even = m * (p.b - m) * p.x / ((p.a + 2 * m - 1) * (p.a + 2 * m));
    const Real odd = -(p.a + m) * (whole + m) * p.x / ((p.a + 2 * m) * (p.a + 2 * m + 1));
    Real step = 1;
    for (const Real numerator : {even, odd}) {
      d = 1 + numerator * d;
      c = 1 + numerator / c;
      if (d == 0) d = kEpsilon;
      if (c == 0) c = kEpsilon;
      d = 1 / d;
      step = c * d;
      product *= step;
    }
    if (fabsl(step - 1) < 2 * kEpsilon) break;
  }
  return BetaPeak(p) / p.a * product;
}

constexpr double kLargeBeta = 1000;

}  // namespace

double Igamma(double a, double x) {
  double edge;
  if (GammaEdge(a, x, &edge)) return edge;
  if (a > kLargeA) {
    const Real tail = GammaNearTail(a, x);
    return double(x < a ? tail : 1 - tail);
  }
  if (x > 1 && x > a) return double(1 - GammaPeak(a, x) * a * GammaFraction(a, x));
  return double(GammaPeak(a, x) * GammaSeries(a, x));
}

double Igammac(double a, double x) {
  double edge;
  if (GammaEdge(a, x, &edge)) return a <= 0 ? kNan : 1 - edge;
  if (a > kLargeA) {
    const Real tail = GammaNearTail(a, x);
    return double(x < a ? 1 - tail : tail);
  }
  if (x > 1.1 && x >= a) return double(GammaPeak(a, x) * a * GammaFraction(a, x));
  const bool small = x <= 0.5 ? a <= -0.4 / log(x) : x <= 1.1 && a <= 1.1 * x;
  return double(small ? GammaSmall(a, x) : 1 - GammaPeak(a, x) * GammaSeries(a, x));
}

// The integral over the whole line of log(t) - digamma(a), weighted with t^a exp(-t), is 0. So the
// derivative follows from the tail in which this factor has one sign.
double IgammaGradA(double a, double x) {
  double edge;
  if (GammaEdge(a, x, &edge)) return isnan(edge) ? kNan : 0;
  const Real lead = LogLessDigamma(x, a), peak = GammaPeak(a, x);
  if (peak == 0) return 0;
  const int side = lead < 0 ? -1 : 1;
  return double(-peak * a * fabsl(Integrate(GammaTail{a, x}, side, [&](Real s) { return lead + s; })));
}

double Betainc(double a, double b, double x) {
  if (isnan(a) || isnan(b) || isnan(x) || !(a > 0) || !(b > 0) || x < 0 || x > 1 || (isinf(a) && isinf(b))) return kNan;
  if (x == 0 || x == 1) return x;
  if (isinf(a) || isinf(b)) return isinf(b) ? 1 : 0;
  const BetaPoint p{a, b, x, 1 - Real(x)};
  const bool below = p.x < (p.a + 1) / (p.a + p.b + 2);
  if (a + b <= kLargeBeta) {
    if (below) return double(BetaByFraction(p));
    const Real rest = BetaByFraction(p.Turned());
    return double(rest < 0.9L ? 1 - rest : BetaByTail(p, -1));
  }
  const Real tail = BetaByTail(p, below ? -1 : 1);
  if (tail > 0.9L) return double(below ? 1 - BetaByTail(p, 1) : BetaByTail(p, -1));
  return double(below ? tail : 1 - tail);
}

}  // namespace thalweg::cpu
