// Derivatives of the logarithm of the gamma function, and the related sums: digamma, polygamma, the
// Hurwitz zeta function.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_POLYGAMMA_H_
#define THALWEG_PLUGINS_CPU_KERNELS_POLYGAMMA_H_

namespace thalweg::cpu {

// Returns the derivative of log|gamma(x)|, or NaN at the poles 0, -1, -2, ... The error is a few
// units in the last place; near the zeros below 0, a few units of pi / tan(pi x).
double Digamma(double x);

// Returns the sum over k >= 0 of (q + k)^-x. The result is infinite for x = 1 and NaN for x < 1. If
// q is a pole (0, -1, ...), the result is infinite for even x, else NaN. Other q below 0 need an
// integer x, else the result is NaN.
double Zeta(double x, double q);

// Returns the n-th derivative of digamma at x, or NaN unless n is 0, 1, 2, ...
double Polygamma(double n, double x);

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_POLYGAMMA_H_
