// The regularised incomplete gamma and beta functions. They are computed in long double; where that
// is longer than double, as on x86-64 and AArch64, the error is below two units in the last place of
// double. Threads: pure functions.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_INCOMPLETE_FUNCTIONS_H_
#define THALWEG_PLUGINS_CPU_KERNELS_INCOMPLETE_FUNCTIONS_H_

namespace thalweg::cpu {

// Returns P(a, x), the integral of t^(a - 1) exp(-t) from 0 to x, divided by gamma(a). NaN for x < 0
// and for a <= 0, except that P(a, 0) is 0 for every a.
double Igamma(double a, double x);

// Returns Q(a, x) = 1 - P(a, x), small results exactly. NaN for x < 0 and for a <= 0.
double Igammac(double a, double x);

// Returns the derivative of P(a, x) for a. NaN and 0 as Igamma.
double IgammaGradA(double a, double x);

// Returns I(a, b, x), the integral of t^(a - 1) (1 - t)^(b - 1) from 0 to x, divided by that from 0 to
// 1. NaN for x outside [0, 1], a <= 0 and b <= 0.
double Betainc(double a, double b, double x);

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_INCOMPLETE_FUNCTIONS_H_
