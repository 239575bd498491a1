// Euclidean norms in types that cannot hold the squares. A sum of squares neither overflows nor
// vanishes unless its root does. For integers the sum is exact and the root is rounded down; it
// wraps around if the type is too short for it.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_NORM_H_
#define THALWEG_PLUGINS_CPU_KERNELS_NORM_H_

#include <cmath>
#include <cstdint>

#include "kernels/common/types.h"

namespace thalweg::cpu {

// Very large and very small numbers are scaled before they are squared, and summed separately.
struct SquareSum {
  static constexpr double kLarge = 0x1p+500, kSmall = 0x1p-500, kScale = 0x1p+600;
  double large = 0, middle = 0, small = 0;
  constexpr SquareSum() = default;
  constexpr SquareSum(int) {}  // NOLINT: nothing yet

  void Add(double x) {
    const double size = std::fabs(x);
    if (size > kLarge)
      large += (x / kScale) * (x / kScale);
    else if (size < kSmall)
      small += (x * kScale) * (x * kScale);
    else
      middle += x * x;
  }
  double Root() const {
    if (middle != middle) return middle;
    if (large > 0) return std::sqrt(large + middle / kScale / kScale) * kScale;
    return middle > 0 ? std::sqrt(middle + small / kScale / kScale) : std::sqrt(small) / kScale;
  }
};

__extension__ typedef unsigned __int128 Wide128;

inline uint64_t RootDown(Wide128 x) {
  auto root = uint64_t(std::fmin(std::sqrt(double(x)), 0x1.fffffffffffffp+63));
  while (Wide128(root) * root > x) --root;
  while (root < UINT64_MAX && Wide128(root + 1) * (root + 1) <= x) ++root;
  return root;
}

template <class T>
using NormSum = std::conditional_t<std::is_integral_v<T>, Wide128, SquareSum>;

template <class T>
struct Norm {
  static constexpr int kStart = 0;
  static NormSum<T> Step(NormSum<T> a, T x) {
    if constexpr (std::is_integral_v<T>) {
      const uint64_t size = x < 0 ? 0 - uint64_t(x) : uint64_t(x);
      return a + Wide128(size) * size;
    } else if constexpr (kIsComplex<T>) {
      a.Add(double(x.real()));
      a.Add(double(x.imag()));
      return a;
    } else {
      a.Add(double(x));
      return a;
    }
  }
  static NormSum<T> Merge(NormSum<T> a, const NormSum<T>& b) {
    if constexpr (std::is_integral_v<T>) return a + b;
    if constexpr (!std::is_integral_v<T>) {
      a.large += b.large;
      a.middle += b.middle;
      a.small += b.small;
      return a;
    }
  }
};

template <class T>
void FinishNorm(const void* acc, int64_t n, int64_t, void* y) {
  auto* a = static_cast<const NormSum<T>*>(acc);
  auto* to = static_cast<T*>(y);
  for (int64_t j = 0; j < n; ++j) {
    if constexpr (std::is_integral_v<T>)
      to[j] = T(RootDown(a[j]));
    else if constexpr (kIsComplex<T>)
      to[j] = T(static_cast<typename T::value_type>(a[j].Root()), 0);
    else
      to[j] = T(a[j].Root());
  }
}

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_NORM_H_
