#include "fold.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>
#include <type_traits>

#include "thalweg/plugin/plugin.h"

namespace thalweg::common {
namespace {

constexpr uint64_t kBlock = 1024;  // elements whose result stays in the first-level cache

float FromBfloat16(uint16_t v) { return std::bit_cast<float>(uint32_t{v} << 16); }
uint16_t ToBfloat16(float v) {
  const auto bits = std::bit_cast<uint32_t>(v);
  if (v != v) return uint16_t(bits >> 16 | 0x40);
  return uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
float FromHalf(uint16_t v) { return float(std::bit_cast<_Float16>(v)); }
uint16_t ToHalf(float v) { return std::bit_cast<uint16_t>(_Float16(v)); }

// Whole numbers wrap.
template <class T>
T Sum(T a, T b) {
  if constexpr (std::is_integral_v<T>) return T(std::make_unsigned_t<T>(a) + std::make_unsigned_t<T>(b));
  return T(a + b);
}
template <class T>
T Product(T a, T b) {
  if constexpr (std::is_integral_v<T>) return T(uint64_t(a) * uint64_t(b));
  return T(a * b);
}
// NaN wins, whoever has it.
template <class T>
T Least(T a, T b) {
  return b < a || b != b ? b : a;
}
template <class T>
T Largest(T a, T b) {
  return b > a || b != b ? b : a;
}

template <class T, T (*Two)(T, T)>
void Join(T* __restrict y, const T* __restrict x, uint64_t n) {
  for (uint64_t i = 0; i < n; ++i) y[i] = Two(y[i], x[i]);
}

template <class T>
void JoinBy(uint32_t how, T* y, const T* x, uint64_t n) {
  switch (how) {
    case TW_REDUCE_PROD: return Join<T, Product<T>>(y, x, n);
    case TW_REDUCE_MIN: return Join<T, Least<T>>(y, x, n);
    case TW_REDUCE_MAX: return Join<T, Largest<T>>(y, x, n);
    default: return Join<T, Sum<T>>(y, x, n);
  }
}

template <class T>
void Divide(T* y, uint32_t by, uint64_t n) {
  if constexpr (std::is_floating_point_v<T>) {
    for (uint64_t i = 0; i < n; ++i) y[i] /= T(by);
  }
}

template <class T>
void FoldAs(uint32_t how, const char* const* in, uint32_t n, uint64_t count, char* out) {
  for (uint64_t at = 0; at < count; at += kBlock) {
    const uint64_t size = std::min(kBlock, count - at);
    T* y = reinterpret_cast<T*>(out) + at;
    std::memcpy(y, reinterpret_cast<const T*>(in[0]) + at, size * sizeof(T));
    for (uint32_t r = 1; r < n; ++r) JoinBy(how, y, reinterpret_cast<const T*>(in[r]) + at, size);
    if (how == TW_REDUCE_MEAN) Divide(y, n, size);
  }
}

template <float (*From)(uint16_t), uint16_t (*To)(float)>
void FoldShort(uint32_t how, const char* const* in, uint32_t n, uint64_t count, char* out) {
  float sum[kBlock], next[kBlock];
  for (uint64_t at = 0; at < count; at += kBlock) {
    const uint64_t size = std::min(kBlock, count - at);
    for (uint32_t r = 0; r < n; ++r) {
      const uint16_t* x = reinterpret_cast<const uint16_t*>(in[r]) + at;
      float* to = r == 0 ? sum : next;
      for (uint64_t i = 0; i < size; ++i) to[i] = From(x[i]);
      if (r > 0) JoinBy(how, sum, next, size);
    }
    if (how == TW_REDUCE_MEAN) Divide(sum, n, size);
    uint16_t* y = reinterpret_cast<uint16_t*>(out) + at;
    for (uint64_t i = 0; i < size; ++i) y[i] = To(sum[i]);
  }
}

using Folder = void (*)(uint32_t, const char* const*, uint32_t, uint64_t, char*);
struct Row {
  uint32_t dtype;
  uint64_t bytes;
  bool real;
  Folder fold;
};
constexpr Row kRows[] = {
    {TW_FLOAT, 4, true, FoldAs<float>},
    {TW_DOUBLE, 8, true, FoldAs<double>},
    {TW_HALF, 2, true, FoldShort<FromHalf, ToHalf>},
    {TW_BFLOAT16, 2, true, FoldShort<FromBfloat16, ToBfloat16>},
    {TW_INT8, 1, false, FoldAs<int8_t>},
    {TW_INT16, 2, false, FoldAs<int16_t>},
    {TW_INT32, 4, false, FoldAs<int32_t>},
    {TW_INT64, 8, false, FoldAs<int64_t>},
    {TW_UINT8, 1, false, FoldAs<uint8_t>},
    {TW_UINT16, 2, false, FoldAs<uint16_t>},
    {TW_UINT32, 4, false, FoldAs<uint32_t>},
    {TW_UINT64, 8, false, FoldAs<uint64_t>},
};

const Row* Find(uint32_t dtype) {
  const auto* found = std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& r) { return r.dtype == dtype; });
  return found == std::end(kRows) ? nullptr : found;
}

}  // namespace

uint64_t FoldedBytes(uint32_t dtype) {
  const Row* row = Find(dtype);
  return row ? row->bytes : 0;
}

bool CanFold(uint32_t dtype, uint32_t how) {
  const Row* row = Find(dtype);
  return row && how >= TW_REDUCE_SUM && how <= TW_REDUCE_MEAN && (how != TW_REDUCE_MEAN || row->real);
}

void DivideBy(uint32_t dtype, uint32_t by, uint64_t count, char* values) {
  if (dtype == TW_DOUBLE) return Divide(reinterpret_cast<double*>(values), by, count);
  Divide(reinterpret_cast<float*>(values), by, count);
}

bool IsShort(uint32_t dtype) { return dtype == TW_HALF || dtype == TW_BFLOAT16; }

void ToFloats(uint32_t dtype, const char* in, uint64_t count, float* out) {
  const auto* x = reinterpret_cast<const uint16_t*>(in);
  for (uint64_t i = 0; i < count; ++i) out[i] = dtype == TW_HALF ? FromHalf(x[i]) : FromBfloat16(x[i]);
}

void FromFloats(uint32_t dtype, const float* in, uint64_t count, char* out) {
  auto* y = reinterpret_cast<uint16_t*>(out);
  for (uint64_t i = 0; i < count; ++i) y[i] = dtype == TW_HALF ? ToHalf(in[i]) : ToBfloat16(in[i]);
}

void Fold(uint32_t dtype, uint32_t how, const char* const* in, uint32_t n, uint64_t count, char* out) {
  Find(dtype)->fold(how, in, n, count, out);
}

}  // namespace thalweg::common
