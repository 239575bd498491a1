// Results that are too large to be found in a cache by whoever reads them next: written past the caches, memory need not be read before
// it is written, which is a third of what an addition moves. Threads: pure functions.
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

// Whether `to` is worth it. One that lies where an input lies is in a cache already.
inline bool IsStreamed(const tw_view* to, std::initializer_list<const tw_view*> inputs) {
  constexpr uint64_t kFrom = 32 << 20;  // bytes, as much as large third-level caches hold
  return to->bytes >= kFrom && std::none_of(inputs.begin(), inputs.end(), [to](const tw_view* v) { return Bytes(v) == Bytes(to); });
}

#ifdef __SSE2__
// REQUIRES: `to` begins a cache line, `from` is aligned to 16 bytes.
inline void StreamLines(const char* from, char* to, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += 16)
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + i), _mm_load_si128(reinterpret_cast<const __m128i*>(from + i)));
}
inline void EndStream() { _mm_sfence(); }
#else
inline void StreamLines(const char* from, char* to, int64_t bytes) { std::memcpy(to, from, size_t(bytes)); }
inline void EndStream() {}
#endif

// Writes n elements of so many bytes to `to`: block(i, m, where) puts elements [i, i + m) at `where` and answers how many it could make.
// Answers n, or the first that could not be made.
template <class F>
int64_t Stream(char* to, int64_t n, uint32_t bytes, F&& block) {
  constexpr int64_t kLine = 64, kBlock = 1024;  // bytes; of larger blocks reading and writing take turns too seldom to overlap
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
