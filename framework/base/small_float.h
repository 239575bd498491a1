// The floating-point formats of at most 16 bits. Threads: any.
#pragma once
#include <cmath>
#include <cstdint>
#include <limits>

#include "thalweg/types.h"

namespace thalweg {

// Sign, exponent, mantissa.
struct SmallFloat {
  uint32_t exponent_bits, mantissa_bits;
  int32_t bias;
  enum { kIeee, kOneNan, kUnsignedZero } specials;  // infinities and NaNs; NaN only at all ones; NaN in the code of minus zero
};

// Returns NULL for other types.
inline const SmallFloat* FindSmallFloat(uint32_t dtype) {
  static constexpr SmallFloat kHalf = {5, 10, 15, SmallFloat::kIeee}, kBfloat16 = {8, 7, 127, SmallFloat::kIeee},
                              kE5M2 = {5, 2, 15, SmallFloat::kIeee}, kE4M3Fn = {4, 3, 7, SmallFloat::kOneNan},
                              kE4M3Fnuz = {4, 3, 8, SmallFloat::kUnsignedZero}, kE4M3B11Fnuz = {4, 3, 11, SmallFloat::kUnsignedZero},
                              kE5M2Fnuz = {5, 2, 16, SmallFloat::kUnsignedZero};
  switch (dtype) {
    case TW_HALF: return &kHalf;
    case TW_BFLOAT16: return &kBfloat16;
    case TW_FLOAT8_E5M2: return &kE5M2;
    case TW_FLOAT8_E4M3FN: return &kE4M3Fn;
    case TW_FLOAT8_E4M3FNUZ: return &kE4M3Fnuz;
    case TW_FLOAT8_E4M3B11FNUZ: return &kE4M3B11Fnuz;
    case TW_FLOAT8_E5M2FNUZ: return &kE5M2Fnuz;
    default: return nullptr;
  }
}

inline float Decode(uint32_t bits, const SmallFloat& f) {
  const uint32_t sign = bits >> (f.exponent_bits + f.mantissa_bits);
  const uint32_t exponent = (bits >> f.mantissa_bits) & ((1u << f.exponent_bits) - 1), mantissa = bits & ((1u << f.mantissa_bits) - 1);
  const bool top = exponent == (1u << f.exponent_bits) - 1;
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  if (f.specials == SmallFloat::kUnsignedZero && sign == 1 && exponent == 0 && mantissa == 0) return kNan;
  if (f.specials == SmallFloat::kOneNan && top && mantissa == (1u << f.mantissa_bits) - 1) return kNan;
  float value;
  if (f.specials == SmallFloat::kIeee && top) {
    value = mantissa ? kNan : std::numeric_limits<float>::infinity();
  } else if (exponent == 0) {
    value = std::ldexp(float(mantissa), 1 - f.bias - int32_t(f.mantissa_bits));
  } else {
    value = std::ldexp(float(mantissa | (1u << f.mantissa_bits)), int32_t(exponent) - f.bias - int32_t(f.mantissa_bits));
  }
  return sign ? -value : value;
}

}  // namespace thalweg
