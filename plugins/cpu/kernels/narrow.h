// Numbers of 8 bits and less: floating-point types of 8 bits, and integers of 4 and 2 bits, which take a byte each. Kernels compute with
// them as float, int8_t and uint8_t.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_NARROW_H_
#define THALWEG_PLUGINS_CPU_KERNELS_NARROW_H_

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "thalweg/types.h"

namespace thalweg::cpu {

// A floating-point type of 8 bits. Codes are those of the magnitude, without the sign. `infinity` is the code of what is too large; types
// without infinities have NaN there. In types without a negative zero, its code 0x80 is the only NaN.
struct Float8 {
  int mantissa, bias;
  uint8_t largest, infinity, nan;
  bool negative_zero;
};

inline constexpr Float8 kFloat8E5M2{2, 15, 0x7b, 0x7c, 0x7e, true};
inline constexpr Float8 kFloat8E4M3Fn{3, 7, 0x7e, 0x7f, 0x7f, true};
inline constexpr Float8 kFloat8E4M3Fnuz{3, 8, 0x7f, 0x80, 0x80, false};
inline constexpr Float8 kFloat8E4M3B11Fnuz{3, 11, 0x7f, 0x80, 0x80, false};
inline constexpr Float8 kFloat8E5M2Fnuz{2, 16, 0x7f, 0x80, 0x80, false};

inline const Float8* FindFloat8(uint32_t dtype) {
  switch (dtype) {
    case TW_FLOAT8_E5M2: return &kFloat8E5M2;
    case TW_FLOAT8_E4M3FN: return &kFloat8E4M3Fn;
    case TW_FLOAT8_E4M3FNUZ: return &kFloat8E4M3Fnuz;
    case TW_FLOAT8_E4M3B11FNUZ: return &kFloat8E4M3B11Fnuz;
    case TW_FLOAT8_E5M2FNUZ: return &kFloat8E5M2Fnuz;
    default: return nullptr;
  }
}

// The number of each code.
inline std::array<float, 256> Float8Numbers(const Float8& t) {
  std::array<float, 256> numbers;
  for (int code = 0; code < 256; ++code) {
    const int magnitude = code & 0x7f, exponent = magnitude >> t.mantissa, fraction = magnitude & ((1 << t.mantissa) - 1);
    float x = exponent == 0 ? std::ldexp(float(fraction), 1 - t.bias - t.mantissa)
                            : std::ldexp(float(fraction + (1 << t.mantissa)), exponent - t.bias - t.mantissa);
    if (magnitude > t.largest)
      x = magnitude == t.infinity ? std::numeric_limits<float>::infinity() : std::numeric_limits<float>::quiet_NaN();
    if (magnitude == t.nan) x = std::numeric_limits<float>::quiet_NaN();
    numbers[size_t(code)] = code & 0x80 ? -x : x;
  }
  if (!t.negative_zero) numbers[0x80] = std::numeric_limits<float>::quiet_NaN();
  return numbers;
}

// Rounds to the nearest number, halves to even.
inline uint8_t Float8Code(const Float8& t, float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x), magnitude = bits & 0x7fffffff;
  const uint8_t sign = uint8_t(bits >> 31 << 7);
  uint32_t code;
  const int smallest = 1 - t.bias;  // exponent of the smallest normal number
  if (magnitude >= 0x7f800000) {
    code = magnitude > 0x7f800000 ? t.nan : t.infinity;
  } else if (magnitude < uint32_t(smallest + 127) << 23) {
    // The sum has the quantum of subnormal numbers as its last bit, so the addition rounds.
    const float base = std::ldexp(1.0f, smallest - t.mantissa + 23);
    code = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + base) - std::bit_cast<uint32_t>(base);
  } else {
    const int cut = 23 - t.mantissa;
    const uint32_t even = (magnitude >> cut) & 1;
    code = ((magnitude + (1u << (cut - 1)) - 1 + even) >> cut) - (uint32_t(127 - t.bias) << t.mantissa);
    if (code > t.largest) code = t.infinity;
  }
  if (!t.negative_zero && (code == 0 || code == 0x80)) return uint8_t(code);
  return uint8_t(code | sign);
}

// Returns the float next to x towards zero, with the last bit set if it is not exact. Rounding that again to fewer bits gives the same as
// rounding x at once.
inline float RoundedToOdd(double x) {
  const float near = float(x);
  if (double(near) == x || x != x) return near;
  uint32_t bits = std::bit_cast<uint32_t>(near);
  if (std::fabs(double(near)) > std::fabs(x)) --bits;
  return std::bit_cast<float>(bits | 1);
}

// An integer type of less than 8 bits. bits: 0: another type.
struct NarrowInteger {
  int bits = 0;
  bool is_signed = false;
};

inline NarrowInteger FindNarrowInteger(uint32_t dtype) {
  switch (dtype) {
    case TW_INT4: return {4, true};
    case TW_UINT4: return {4, false};
    case TW_INT2: return {2, true};
    case TW_UINT2: return {2, false};
    default: return {};
  }
}

// Keeps the low bits of a byte, as a number of the type.
inline uint8_t LowBits(NarrowInteger t, uint8_t x) {
  const int cut = 8 - t.bits;
  return t.is_signed ? uint8_t(int8_t(uint8_t(x << cut)) >> cut) : uint8_t(uint8_t(x << cut) >> cut);
}

// Replaces a byte that does not fit by the nearest number that does.
inline uint8_t Nearest(NarrowInteger t, uint8_t x) {
  if (!t.is_signed) return std::min(x, uint8_t((1 << t.bits) - 1));
  const int8_t high = int8_t((1 << (t.bits - 1)) - 1);
  return uint8_t(std::clamp<int8_t>(int8_t(x), int8_t(-high - 1), high));
}

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_NARROW_H_
