// Functions of complex numbers that the standard library lacks.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_COMMON_COMPLEX_H_
#define THALWEG_PLUGINS_CPU_KERNELS_COMMON_COMPLEX_H_

#include <cmath>
#include <complex>

namespace thalweg::cpu {

// exp(z) - 1 and log(1 + z), without cancellation near 0.
template <class T>
std::complex<T> Expm1(std::complex<T> z) {
  const T half_sine = std::sin(z.imag() / 2), e = std::expm1(z.real());
  return {e * std::cos(z.imag()) - 2 * half_sine * half_sine, (e + 1) * std::sin(z.imag())};
}
template <class T>
std::complex<T> Log1p(std::complex<T> z) {
  const T x = z.real(), y = z.imag();
  const T re = std::abs(x) + std::abs(y) < T(0.5) ? std::log1p(x * (2 + x) + y * y) / 2 : std::log(std::hypot(1 + x, y));
  return {re, std::atan2(y, 1 + x)};
}

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_COMMON_COMPLEX_H_
