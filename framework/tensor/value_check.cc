#include "framework/tensor/value_check.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "framework/base/small_float.h"
#include "framework/base/strings.h"

namespace thalweg {
namespace {

// Returns true if the magnitude of an element, as bits, is above `most`. The inner loop has a fixed
// length, so that the compiler turns it into vector instructions.
template <class Bits>
bool AnyAbove(const char* data, uint64_t count, Bits most) {
  constexpr uint64_t kBlock = 64;
  constexpr Bits kMagnitude = std::numeric_limits<Bits>::max();
  const auto above = [&](uint64_t i) {
    Bits bits;
    std::memcpy(&bits, data + i * sizeof(Bits), sizeof(Bits));
    return Bits(-Bits(Bits(bits & kMagnitude) > most));
  };
  uint64_t i = 0;
  for (; i + kBlock <= count; i += kBlock) {
    Bits any = 0;
    for (uint64_t k = 0; k < kBlock; ++k) any = Bits(any | above(i + k));
    if (any != 0) return true;
  }
  for (; i < count; ++i) {
    if (above(i) != 0) return true;
  }
  return false;
}

bool IsComplex(uint32_t dtype) { return dtype == TW_COMPLEX64 || dtype == TW_COMPLEX128; }

const char* DataOf(const tw_view& v) { return static_cast<const char*>(v.data) + v.offset; }

template <class T>
double At(const tw_view& v, uint64_t i) {
  T value;
  std::memcpy(&value, DataOf(v) + i * sizeof(T), sizeof(T));
  return double(value);
}

// Returns number i as a double; a complex element is two numbers. False for types without numbers.
bool Number(const tw_view& v, uint64_t i, double* out) {
  switch (v.dtype) {
    case TW_FLOAT:
    case TW_COMPLEX64: *out = At<float>(v, i); return true;
    case TW_DOUBLE:
    case TW_COMPLEX128: *out = At<double>(v, i); return true;
    case TW_HALF:
    case TW_BFLOAT16: *out = Decode(uint32_t(At<uint16_t>(v, i)), *FindSmallFloat(v.dtype)); return true;
    case TW_FLOAT8_E5M2:
    case TW_FLOAT8_E4M3FN:
    case TW_FLOAT8_E4M3FNUZ:
    case TW_FLOAT8_E4M3B11FNUZ:
    case TW_FLOAT8_E5M2FNUZ: *out = Decode(uint32_t(At<uint8_t>(v, i)), *FindSmallFloat(v.dtype)); return true;
    case TW_BOOL:
    case TW_UINT8: *out = At<uint8_t>(v, i); return true;
    case TW_INT8: *out = At<int8_t>(v, i); return true;
    case TW_INT16: *out = At<int16_t>(v, i); return true;
    case TW_UINT16: *out = At<uint16_t>(v, i); return true;
    case TW_INT32: *out = At<int32_t>(v, i); return true;
    case TW_UINT32: *out = At<uint32_t>(v, i); return true;
    case TW_INT64: *out = At<int64_t>(v, i); return true;
    case TW_UINT64: *out = At<uint64_t>(v, i); return true;
    default: return false;
  }
}

bool Refuses(double number, ValueCheck check) { return std::isnan(number) || (check == ValueCheck::kFinite && std::isinf(number)); }

}  // namespace

ValueCheck ValueCheckOf(std::string_view text) {
  return text == "nan" ? ValueCheck::kNan : text == "finite" ? ValueCheck::kFinite : ValueCheck::kOff;
}

bool IsRefused(const tw_view& v, ValueCheck check) {
  if (check == ValueCheck::kOff || !v.data || v.count == 0) return false;
  const bool nan = check == ValueCheck::kNan;
  const uint64_t count = IsComplex(v.dtype) ? 2 * v.count : v.count;
  switch (v.dtype) {
    case TW_FLOAT:
    case TW_COMPLEX64: return AnyAbove<int32_t>(DataOf(v), count, nan ? 0x7f800000 : 0x7f7fffff);
    case TW_DOUBLE:
    case TW_COMPLEX128: return AnyAbove<int64_t>(DataOf(v), count, nan ? 0x7ff0000000000000 : 0x7fefffffffffffff);
    case TW_HALF: return AnyAbove<int16_t>(DataOf(v), count, nan ? 0x7c00 : 0x7bff);
    case TW_BFLOAT16: return AnyAbove<int16_t>(DataOf(v), count, nan ? 0x7f80 : 0x7f7f);
    case TW_FLOAT8_E5M2: return AnyAbove<int8_t>(DataOf(v), count, nan ? 0x7c : 0x7b);
    case TW_FLOAT8_E4M3FN: return AnyAbove<int8_t>(DataOf(v), count, 0x7e);  // it has no infinities
    case TW_FLOAT8_E4M3FNUZ:
    case TW_FLOAT8_E4M3B11FNUZ:
    case TW_FLOAT8_E5M2FNUZ: return std::memchr(DataOf(v), 0x80, size_t(count)) != nullptr;  // their only NaN
    default: return false;
  }
}

std::string RangeText(const tw_view& v) {
  double number = 0, least = std::numeric_limits<double>::infinity(), largest = -least;
  if (!v.data || v.strides || v.count == 0 || !Number(v, 0, &number)) return "";
  uint64_t nans = 0, infinities = 0;
  const uint64_t count = IsComplex(v.dtype) ? 2 * v.count : v.count;
  for (uint64_t i = 0; i < count && Number(v, i, &number); ++i) {
    nans += std::isnan(number);
    infinities += std::isinf(number);
    if (!std::isfinite(number)) continue;
    least = std::min(least, number);
    largest = std::max(largest, number);
  }
  std::string text;
  if (least <= largest) text = least < largest ? StrCat(" from ", least, " to ", largest) : StrCat(" of ", least);
  if (nans) text += StrCat(" with ", nans, " NaN");
  if (infinities) text += StrCat(nans ? " and " : " with ", infinities, " infinite");
  return text;
}

std::string FirstRefused(const tw_view& v, ValueCheck check) {
  const uint64_t parts = IsComplex(v.dtype) ? 2 : 1;
  uint64_t at = 0;
  for (double number = 0; at < parts * v.count && Number(v, at, &number) && !Refuses(number, check);) ++at;
  at /= parts;
  std::string text;
  for (int32_t d = v.rank - 1; d >= 0; --d) {
    const auto size = uint64_t(v.dims[d]);
    text = StrCat(at % size, text.empty() ? "" : ", ", text);
    at /= size;
  }
  return StrCat("[", text, "]");
}

}  // namespace thalweg
