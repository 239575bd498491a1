// Moves runs of elements between the type of tensors and the type of sums: a copy, or a conversion
// if the types differ.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_WIDEN_H_
#define THALWEG_PLUGINS_CPU_KERNELS_WIDEN_H_

#include <cstring>

#include "kernels/common/types.h"
#include "kernels/vector.h"

namespace thalweg::cpu {

// Copies a run of bytes that is usually short, or clears it if from == nullptr. Rows of small
// filters are a few elements, and a call of memcpy for each would cost more than the copy. Two
// overlapping moves of a constant size make any size up to twice that.
template <size_t kSize>
inline void MoveEnds(const char* from, char* to, size_t bytes) {
  if (from) {
    char first[kSize], last[kSize];
    std::memcpy(first, from, kSize);
    std::memcpy(last, from + bytes - kSize, kSize);
    std::memcpy(to, first, kSize);
    std::memcpy(to + bytes - kSize, last, kSize);
  } else {
    std::memset(to, 0, kSize);
    std::memset(to + bytes - kSize, 0, kSize);
  }
}
inline void MoveShort(const void* source, void* dest, size_t bytes) {
  const char* from = static_cast<const char*>(source);
  char* to = static_cast<char*>(dest);
  if (bytes > 256) {
    if (from)
      std::memcpy(to, from, bytes);
    else
      std::memset(to, 0, bytes);
  } else if (bytes >= 128) {
    MoveEnds<128>(from, to, bytes);
  } else if (bytes >= 64) {
    MoveEnds<64>(from, to, bytes);
  } else if (bytes >= 32) {
    MoveEnds<32>(from, to, bytes);
  } else if (bytes >= 16) {
    MoveEnds<16>(from, to, bytes);
  } else if (bytes >= 8) {
    MoveEnds<8>(from, to, bytes);
  } else if (bytes >= 4) {
    MoveEnds<4>(from, to, bytes);
  }
}

template <class T>
void Widen(const VectorTable& v, const T* from, Wide<T>* to, int64_t n) {
  if constexpr (std::is_same_v<T, half>)
    v.load_half(reinterpret_cast<const uint16_t*>(from), to, n);
  else if constexpr (std::is_same_v<T, bfloat16>)
    v.load_bfloat16(reinterpret_cast<const uint16_t*>(from), to, n);
  else if (n > 0)
    MoveShort(from, to, size_t(n) * sizeof(T));
}

// Writes n zeros.
template <class T>
void Clear(T* to, int64_t n) {
  static_assert(sizeof(T) >= 4);
  if (n > 0) MoveShort(nullptr, to, size_t(n) * sizeof(T));
}

template <class T>
void Narrow(const VectorTable& v, const Wide<T>* from, T* to, int64_t n) {
  if constexpr (std::is_same_v<T, half>)
    v.store_half(from, reinterpret_cast<uint16_t*>(to), n);
  else if constexpr (std::is_same_v<T, bfloat16>)
    v.store_bfloat16(from, reinterpret_cast<uint16_t*>(to), n);
  else if (n > 0)
    MoveShort(from, to, size_t(n) * sizeof(T));
}

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_WIDEN_H_
