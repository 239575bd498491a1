#include "framework/base/crc32c.h"

#include <array>
#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace thalweg {
namespace {

static_assert(std::endian::native == std::endian::little, "words are loaded as they lie in memory");

// kTables[k][b]: the effect of byte b on the checksum when k more bytes follow it in the same word.
constexpr auto kTables = [] {
  std::array<std::array<uint32_t, 256>, 8> t{};
  for (uint32_t b = 0; b < 256; ++b) {
    uint32_t c = b;
    for (int bit = 0; bit < 8; ++bit) c = (c >> 1) ^ ((c & 1) ? 0x82f63b78u : 0);
    t[0][b] = c;
  }
  for (uint32_t b = 0; b < 256; ++b) {
    for (size_t k = 1; k < 8; ++k) t[k][b] = (t[k - 1][b] >> 8) ^ t[0][t[k - 1][b] & 255];
  }
  return t;
}();

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) uint32_t ExtendSse42(uint32_t crc, const void* data, uint64_t n) {
  const char* p = static_cast<const char*>(data);
  uint64_t c = crc ^ 0xffffffffu;
  for (; n >= 8; n -= 8, p += 8) {
    uint64_t word;
    std::memcpy(&word, p, 8);
    c = _mm_crc32_u64(c, word);
  }
  uint32_t tail = uint32_t(c);
  for (; n > 0; --n, ++p) tail = _mm_crc32_u8(tail, static_cast<unsigned char>(*p));
  return tail ^ 0xffffffffu;
}
bool HaveSse42() {
  static const bool have = __builtin_cpu_supports("sse4.2");
  return have;
}
#endif

}  // namespace

uint32_t ExtendCrc32cPortable(uint32_t crc, const void* data, uint64_t n) {
  const auto* p = static_cast<const unsigned char*>(data);
  uint32_t c = crc ^ 0xffffffffu;
  for (; n >= 8; n -= 8, p += 8) {
    uint32_t low;
    std::memcpy(&low, p, 4);
    low ^= c;
    c = kTables[7][low & 255] ^ kTables[6][(low >> 8) & 255] ^ kTables[5][(low >> 16) & 255] ^ kTables[4][low >> 24] ^ kTables[3][p[4]] ^
        kTables[2][p[5]] ^ kTables[1][p[6]] ^ kTables[0][p[7]];
  }
  for (; n > 0; --n, ++p) c = (c >> 8) ^ kTables[0][(c ^ *p) & 255];
  return c ^ 0xffffffffu;
}

uint32_t ExtendCrc32c(uint32_t crc, const void* data, uint64_t n) {
#if defined(__x86_64__)
  if (HaveSse42()) return ExtendSse42(crc, data, n);
#endif
  return ExtendCrc32cPortable(crc, data, n);
}

std::string_view Crc32cMethod() {
#if defined(__x86_64__)
  if (HaveSse42()) return "sse4.2";
#endif
  return "tables";
}

}  // namespace thalweg
