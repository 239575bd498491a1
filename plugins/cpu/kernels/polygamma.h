// Derivatives of the logarithm of the gamma function, and the sums that they are: digamma, polygamma, the zeta function of Hurwitz.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_POLYGAMMA_H_
#define THALWEG_PLUGINS_CPU_KERNELS_POLYGAMMA_H_

namespace thalweg::cpu {

// The derivative of log|gamma(x)|; NaN at the poles 0, -1, -2, ... A few units in the last place, near the zeros below 0 of pi / tan(pi x).
double Digamma(double x);

// The sum over k >= 0 of (q + k)^-x. x = 1: infinite; x < 1: NaN. Where q is a pole (0, -1, ...): infinite for even x, else NaN. Other q
// below 0 need a whole x, else NaN.
double Zeta(double x, double q);

// The n-th derivative of digamma at x; NaN unless n is 0, 1, 2, ...
double Polygamma(double n, double x);

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_POLYGAMMA_H_
