// Turns a stream of random bits into numbers of a distribution, as TensorFlow does: bit for bit,
// except that normal numbers agree only as far as the C library's logf and sincosf do. A
// distribution makes outputs in groups of kGroup. Each group starts at a fixed place in the stream,
// kBlocks blocks after the group before, so the numbers do not depend on threads.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_DISTRIBUTIONS_H_
#define THALWEG_PLUGINS_CPU_KERNELS_DISTRIBUTIONS_H_

#include <algorithm>
#include <bit>
#include <cmath>

#include "kernels/common/parallel.h"
#include "kernels/common/types.h"
#include "kernels/philox.h"

namespace thalweg::cpu {

// The number of blocks reserved for every output of a tensor, however many it uses.
inline constexpr uint64_t kBlocksPerElement = 256;

// ---- Bits to numbers in [0, 1): random mantissa bits under the exponent of [1, 2), less 1 ----

inline float ToFloat(uint32_t x) { return std::bit_cast<float>((x & 0x7fffff) | 0x3f800000) - 1.0f; }
inline double ToDouble(uint32_t high, uint32_t low) {
  return std::bit_cast<double>((uint64_t{high & 0xfffff} << 32) | low | (uint64_t{1023} << 52)) - 1.0;
}
inline half ToHalf(uint32_t x) { return half(float(std::bit_cast<half>(uint16_t((x & 0x3ff) | (15 << 10)))) - 1.0f); }
inline bfloat16 ToBfloat16(uint32_t x) { return bfloat16(float(std::bit_cast<bfloat16>(uint16_t((x & 0x7f) | (127 << 7)))) - 1.0f); }

// Turns two uniform numbers into two normal ones (Box and Muller). Very small numbers are raised to
// keep them away from the logarithm.
inline void BoxMuller(uint32_t x0, uint32_t x1, float* y) {
  const float u = std::max(ToFloat(x0), 1.0e-7f);
  const float angle = float(2.0 * M_PI * double(ToFloat(x1))), radius = std::sqrt(-2.0f * std::log(u));
  float sine, cosine;
  sincosf(angle, &sine, &cosine);
  y[0] = sine * radius;
  y[1] = cosine * radius;
}
inline void BoxMuller(uint32_t x0, uint32_t x1, uint32_t x2, uint32_t x3, double* y) {
  const double u = std::max(ToDouble(x0, x1), 1.0e-7);
  const double angle = 2 * M_PI * ToDouble(x2, x3), radius = std::sqrt(-2.0 * std::log(u));
  double sine, cosine;
  sincos(angle, &sine, &cosine);
  y[0] = sine * radius;
  y[1] = cosine * radius;
}

// ---- Distributions: a group of kGroup outputs from the stream at its place, which is kBlocks blocks after the group before ----

// Every group takes one block.
template <class T>
struct Plain {
  using Value = T;
  static constexpr int64_t kGroup = sizeof(T) == 8 ? 2 : 4, kBlocks = 1;
};

template <class T>
struct Uniform : Plain<T> {
  static constexpr int64_t kCost = 16;  // per element, in units of ParallelFor
  void operator()(Philox& stream, T* y) const {
    const Philox::Block x = stream.Next();
    if constexpr (std::is_same_v<T, double>) {
      for (size_t i = 0; i < 2; ++i) y[i] = ToDouble(x[2 * i], x[2 * i + 1]);
    } else {
      for (size_t i = 0; i < 4; ++i) {
        if constexpr (std::is_same_v<T, float>)
          y[i] = ToFloat(x[i]);
        else if constexpr (std::is_same_v<T, half>)
          y[i] = ToHalf(x[i]);
        else
          y[i] = ToBfloat16(x[i]);
      }
    }
  }
};

template <class T>
struct UniformInt : Plain<T> {
  using Unsigned = std::make_unsigned_t<T>;
  static constexpr int64_t kCost = 24;
  T low;
  Unsigned range;  // may exceed the largest T
  void operator()(Philox& stream, T* y) const {
    const Philox::Block x = stream.Next();
    for (size_t i = 0; i < size_t(Plain<T>::kGroup); ++i) {
      Unsigned bits;
      if constexpr (sizeof(T) == 8)
        bits = x[2 * i] | (uint64_t{x[2 * i + 1]} << 32);
      else
        bits = x[i];
      y[i] = T(Unsigned(low) + bits % range);
    }
  }
};

template <class T>
struct Normal : Plain<T> {
  static constexpr int64_t kCost = 80;
  void operator()(Philox& stream, T* y) const {
    const Philox::Block x = stream.Next();
    if constexpr (std::is_same_v<T, double>) {
      BoxMuller(x[0], x[1], x[2], x[3], y);
    } else {
      float f[4];
      BoxMuller(x[0], x[1], f);
      BoxMuller(x[2], x[3], f + 2);
      for (int i = 0; i < 4; ++i) y[i] = T(f[i]);
    }
  }
};

// Draws again for numbers with magnitude 2 or more, from the group's reserved blocks.
template <class T>
struct TruncatedNormal {
  using Value = T;
  static constexpr int64_t kGroup = sizeof(T) == 8 ? 2 : 4, kBlocks = kGroup * int64_t(kBlocksPerElement) / 4;
  static constexpr int64_t kCost = 100;
  void operator()(Philox& stream, T* y) const {
    for (int64_t made = 0;;) {
      const Philox::Block x = stream.Next();
      Wide<T> pair[4];
      int drawn = 2;
      if constexpr (std::is_same_v<T, double>) {
        BoxMuller(x[0], x[1], x[2], x[3], pair);
      } else {
        BoxMuller(x[0], x[1], pair);
        BoxMuller(x[2], x[3], pair + 2);
        drawn = 4;
      }
      for (int i = 0; i < drawn; ++i) {
        if (!(std::abs(pair[i]) < Wide<T>(2))) continue;
        y[made++] = T(pair[i]);
        if (made == kGroup) return;
      }
    }
  }
};

// Writes n numbers, from the stream's position on.
template <class D>
void FillRandom(const tw_frame* f, const Philox& start, const D& distribution, typename D::Value* y, int64_t n) {
  const int64_t groups = (n + D::kGroup - 1) / D::kGroup;
  ParallelFor(f, groups, D::kGroup * D::kCost, [&](int64_t begin, int64_t end) {
    for (int64_t g = begin; g < end; ++g) {
      Philox at = start.After(uint64_t(g * D::kBlocks));
      typename D::Value group[D::kGroup];
      distribution(at, group);
      std::copy_n(group, std::min(D::kGroup, n - g * D::kGroup), y + g * D::kGroup);
    }
  });
}

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_DISTRIBUTIONS_H_
