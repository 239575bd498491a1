// What the writers of summaries share: fields of messages, and elements of tensors as numbers.
// Threads: any.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "framework/base/dtype.h"
#include "framework/base/status.h"
#include "framework/proto/wire.h"
#include "framework/tensor/shape.h"
#include "thalweg/plugin/tensor.h"

namespace thalweg {

template <class Bits>
void PutFixedField(uint32_t number, Bits bits, std::string* to) {
  PutVarint(number << 3 | (sizeof(Bits) == 8 ? WireField::kFixed64 : WireField::kFixed32), to);
  for (size_t i = 0; i < sizeof(Bits); ++i) *to += char(bits >> 8 * i);
}
inline void PutDoubleField(uint32_t number, double v, std::string* to) { PutFixedField(number, std::bit_cast<uint64_t>(v), to); }
inline void PutFloatField(uint32_t number, float v, std::string* to) { PutFixedField(number, std::bit_cast<uint32_t>(v), to); }

// "summary 'loss': "
std::string OfTag(std::string_view tag);
// INVALID_ARGUMENT for a tag that is empty or no UTF-8.
Status CheckTag(std::string_view tag);
// INVALID_ARGUMENT, naming the tag, unless the elements can be read one after the other.
Status CheckDense(std::string_view tag, const tw_view& v);

// Appends a value to a Summary message: its tag, and the field `number` of it with these bytes.
// metadata: a SummaryMetadata message; may be empty.
void AppendValue(std::string_view tag, uint32_t number, std::string_view bytes, std::string_view metadata, std::string* to);
// A SummaryMetadata message.
std::string MetadataOf(std::string_view plugin, std::string_view content);

inline float FloatOfHalf(uint16_t bits) {
  const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  float v =
      exponent == 31 ? (mantissa ? NAN : INFINITY) : std::ldexp(float(exponent ? 1024 + mantissa : mantissa), std::max(exponent, 1) - 25);
  return bits & 0x8000 ? -v : v;
}

namespace numbers {

template <class T, class F>
void Each(const tw_view& v, F&& f) {
  const char* p = static_cast<const char*>(v.data) + v.offset;
  for (uint64_t i = 0; i < v.count; ++i, p += sizeof(T)) {
    T element;
    std::memcpy(&element, p, sizeof element);
    f(double(element));
  }
}

}  // namespace numbers

// Calls f(double) for each element; returns false for types that are no real numbers.
// REQUIRES: CheckDense.
template <class F>
bool EachNumber(const tw_view& v, F&& f) {
  switch (v.dtype) {
    case TW_FLOAT: numbers::Each<float>(v, f); return true;
    case TW_DOUBLE: numbers::Each<double>(v, f); return true;
    case TW_INT8: numbers::Each<int8_t>(v, f); return true;
    case TW_INT16: numbers::Each<int16_t>(v, f); return true;
    case TW_INT32: numbers::Each<int32_t>(v, f); return true;
    case TW_INT64: numbers::Each<int64_t>(v, f); return true;
    case TW_UINT8: numbers::Each<uint8_t>(v, f); return true;
    case TW_BOOL: numbers::Each<uint8_t>(v, f); return true;
    case TW_UINT16: numbers::Each<uint16_t>(v, f); return true;
    case TW_UINT32: numbers::Each<uint32_t>(v, f); return true;
    case TW_UINT64: numbers::Each<uint64_t>(v, f); return true;
    case TW_HALF: numbers::Each<uint16_t>(v, [&](double bits) { f(double(FloatOfHalf(uint16_t(bits)))); }); return true;
    case TW_BFLOAT16: numbers::Each<uint16_t>(v, [&](double bits) { f(double(std::bit_cast<float>(uint32_t(bits) << 16))); }); return true;
    default: return false;
  }
}

}  // namespace thalweg
