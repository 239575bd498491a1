// Element types beyond C++'s own: half, bfloat16 and complex numbers, their spelling in a kernel
// spec, and the type that sums of them use. For kernels that compute. Kernels that only move bytes
// need element.h instead, which is cheaper to include.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_COMMON_TYPES_H_
#define THALWEG_PLUGINS_CPU_KERNELS_COMMON_TYPES_H_

#include <complex>
#include <type_traits>

#include <Eigen/Core>

#include "thalweg/cpp/plugin.hpp"

namespace thalweg::cpu {

using half = Eigen::half;
using bfloat16 = Eigen::bfloat16;
using complex64 = std::complex<float>;
using complex128 = std::complex<double>;

template <class T>
inline constexpr bool kIsSmallFloat = std::is_same_v<T, half> || std::is_same_v<T, bfloat16>;
template <class T>
inline constexpr bool kIsFloat = std::is_floating_point_v<T> || kIsSmallFloat<T>;
template <class T>
inline constexpr bool kIsComplex = std::is_same_v<T, complex64> || std::is_same_v<T, complex128>;

// The type for arithmetic on T: float for half and bfloat16, else T.
template <class T>
using Wide = std::conditional_t<kIsSmallFloat<T>, float, T>;

}  // namespace thalweg::cpu

namespace tw {
template <>
inline constexpr const char* dtype<Eigen::half> = "half";
template <>
inline constexpr const char* dtype<Eigen::bfloat16> = "bfloat16";
template <>
inline constexpr const char* dtype<std::complex<float>> = "complex64";
template <>
inline constexpr const char* dtype<std::complex<double>> = "complex128";
}  // namespace tw

#endif  // THALWEG_PLUGINS_CPU_KERNELS_COMMON_TYPES_H_
