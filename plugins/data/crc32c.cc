#include "crc32c.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace thalweg::data {
namespace {

constexpr uint32_t kPolynomial = 0x82f63b78u;

constexpr auto kBytes = [] {
  std::array<uint32_t, 256> t{};
  for (uint32_t b = 0; b < 256; ++b) {
    uint32_t c = b;
    for (int bit = 0; bit < 8; ++bit) c = (c >> 1) ^ ((c & 1) ? kPolynomial : 0);
    t[b] = c;
  }
  return t;
}();

uint32_t Step(uint32_t c, const unsigned char* p, uint64_t n) {
  for (; n > 0; --n, ++p) c = (c >> 8) ^ kBytes[(c ^ *p) & 255];
  return c;
}

#if defined(__x86_64__)
// The instruction has a latency of three cycles, so three streams run at once. kShift appends
// kStream zero bytes to the checksum of a stream: a table for each byte of the checksum.
constexpr uint64_t kStream = 1024;
using Shift = std::array<std::array<uint32_t, 256>, 4>;

const Shift& ShiftOfStream() {
  static const Shift shift = [] {
    Shift t{};
    const unsigned char zeros[kStream] = {};
    for (uint32_t k = 0; k < 4; ++k)
      for (uint32_t b = 0; b < 256; ++b) t[k][b] = Step(b << 8 * k, zeros, kStream);
    return t;
  }();
  return shift;
}
uint32_t Shifted(const Shift& t, uint32_t c) { return t[0][c & 255] ^ t[1][c >> 8 & 255] ^ t[2][c >> 16 & 255] ^ t[3][c >> 24]; }

uint64_t WordAt(const unsigned char* p) {
  uint64_t word;
  std::memcpy(&word, p, 8);
  return word;
}

__attribute__((target("sse4.2"))) uint32_t Fast(const void* bytes, uint64_t n) {
  const auto* p = static_cast<const unsigned char*>(bytes);
  uint64_t c = 0xffffffffu;
  if (n >= 3 * kStream) {
    const Shift& shift = ShiftOfStream();
    for (; n >= 3 * kStream; n -= 3 * kStream, p += 3 * kStream) {
      uint64_t a = c, b = 0, d = 0;
      for (uint64_t i = 0; i < kStream; i += 8) {
        a = _mm_crc32_u64(a, WordAt(p + i));
        b = _mm_crc32_u64(b, WordAt(p + kStream + i));
        d = _mm_crc32_u64(d, WordAt(p + 2 * kStream + i));
      }
      c = Shifted(shift, Shifted(shift, uint32_t(a)) ^ uint32_t(b)) ^ uint32_t(d);
    }
  }
  for (; n >= 8; n -= 8, p += 8) c = _mm_crc32_u64(c, WordAt(p));
  auto tail = uint32_t(c);
  for (; n > 0; --n, ++p) tail = _mm_crc32_u8(tail, *p);
  return tail ^ 0xffffffffu;
}
#endif

}  // namespace

uint32_t Crc32cPortable(const void* bytes, uint64_t n) {
  return Step(0xffffffffu, static_cast<const unsigned char*>(bytes), n) ^ 0xffffffffu;
}

uint32_t Crc32c(const void* bytes, uint64_t n) {
#if defined(__x86_64__)
  static const bool have = __builtin_cpu_supports("sse4.2");
  if (have) return Fast(bytes, n);
#endif
  return Crc32cPortable(bytes, n);
}

}  // namespace thalweg::data
