// Integer arithmetic with defined results. It wraps around, as in NumPy and TensorFlow; C++ leaves
// signed overflow undefined.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_COMMON_ARITHMETIC_H_
#define THALWEG_PLUGINS_CPU_KERNELS_COMMON_ARITHMETIC_H_

#include <stdint.h>

#include <type_traits>

namespace thalweg::cpu {

// The type to compute in: for integers an unsigned type that is not promoted to int, for other
// types T itself.
template <class T, bool = std::is_integral_v<T> && !std::is_same_v<T, bool>>
struct WrapType {
  using type = T;
};
template <class T>
struct WrapType<T, true> {
  using type = std::conditional_t<(sizeof(T) < 4), uint32_t, std::make_unsigned_t<T>>;
};
template <class T>
constexpr auto Wrap(T v) {
  return static_cast<typename WrapType<T>::type>(v);
}

template <class T>
constexpr T Plus(T x, T y) {
  return static_cast<T>(Wrap(x) + Wrap(y));
}
template <class T>
constexpr T Minus(T x, T y) {
  return static_cast<T>(Wrap(x) - Wrap(y));
}
template <class T>
constexpr T Times(T x, T y) {
  return static_cast<T>(Wrap(x) * Wrap(y));
}

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_COMMON_ARITHMETIC_H_
