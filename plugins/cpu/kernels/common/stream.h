// Writes results that are too large to stay in a cache until they are read. Non-temporal stores
// bypass the caches, so memory is not read before it is written; that read is a third of an
// addition's traffic. Threads: pure functions.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_COMMON_STREAM_H_
#define THALWEG_PLUGINS_CPU_KERNELS_COMMON_STREAM_H_

#include <algorithm>
#include <cstring>
#include <initializer_list>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "kernels/common/element.h"

namespace thalweg::cpu {

// Returns true if `to` is large enough for streaming. A result that overwrites an input is in a
// cache already and is not streamed.
inline bool IsStreamed(const tw_view* to, std::initializer_list<const tw_view*> inputs) {
  constexpr uint64_t kFrom = 32 << 20;  // bytes, the size of a large third-level cache
  return to->bytes >= kFrom && std::none_of(inputs.begin(), inputs.end(), [to](const tw_view* v) { return Bytes(v) == Bytes(to); });
}

#ifdef __SSE2__
// REQUIRES: `to` starts at a cache line, `from` is aligned to 16 bytes.
inline void StreamLines(const char* from, char* to, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += 16)
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + i), _mm_load_si128(reinterpret_cast<const __m128i*>(from + i)));
}
inline void EndStream() { _mm_sfence(); }
#else
inline void StreamLines(const char* from, char* to, int64_t bytes) { std::memcpy(to, from, size_t(bytes)); }
inline void EndStream() {}
#endif

// Writes n elements of `bytes` bytes each to `to`. block(i, m, where) writes elements [i, i + m) at
// `where` and returns how many it could make. Returns n, or the index of the first element that
// could not be made.
template <class F>
int64_t Stream(char* to, int64_t n, uint32_t bytes, F&& block) {
  constexpr int64_t kLine = 64, kBlock = 1024;  // bytes; with larger blocks, reads and writes alternate too seldom to overlap
  const int64_t each = bytes, misplaced = int64_t(reinterpret_cast<uintptr_t>(to) % kLine);
  int64_t i = misplaced ? std::min(n, (kLine - misplaced) / each) : 0;
  if (const int64_t done = i ? block(int64_t{0}, i, to) : 0; done < i) return done;
  alignas(kLine) char buffer[kBlock];
  while (i < n) {
    const int64_t m = std::min(n - i, kBlock / each), lines = m * each / kLine * kLine;
    const int64_t done = block(i, m, buffer);
    if (done < m) return i + done;
    StreamLines(buffer, to + i * each, lines);
    std::memcpy(to + i * each + lines, buffer + lines, size_t(m * each - lines));
    i += m;
  }
  EndStream();
  return n;
}

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_COMMON_STREAM_H_
