// An independent implementation of the checksum of tables and checkpoints, which detects errors in
// the runtime's own.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>

namespace thalweg::fuzz {

// Computes CRC-32C with the mask of the formats, one byte at a time.
inline uint32_t MaskedCrc(std::string_view bytes) {
  static const std::array<uint32_t, 256> table = [] {
    std::array<uint32_t, 256> t{};
    for (uint32_t n = 0; n < 256; ++n) {
      t[n] = n;
      for (int i = 0; i < 8; ++i) t[n] = t[n] & 1 ? t[n] >> 1 ^ 0x82f63b78 : t[n] >> 1;
    }
    return t;
  }();
  uint32_t crc = ~0u;
  for (const char c : bytes) crc = crc >> 8 ^ table[(crc ^ uint8_t(c)) & 0xff];
  crc = ~crc;
  return (crc >> 15 | crc << 17) + 0xa282ead8;
}

}  // namespace thalweg::fuzz
