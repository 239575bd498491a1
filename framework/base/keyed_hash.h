// SipHash-1-3 (Aumasson, Bernstein: "SipHash: a fast short-input PRF", 2012) with a per-process
// random key. It hashes names that were read from files: the author of a file cannot choose names
// that collide and so slow a table down. The values differ between processes. Threads: any.
#pragma once
#include <unistd.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace thalweg {

struct HashKey {
  uint64_t a, b;
};

inline uint64_t KeyedHash(std::string_view text, const HashKey& key) {
  static_assert(std::endian::native == std::endian::little);
  uint64_t v0 = key.a ^ 0x736f6d6570736575, v1 = key.b ^ 0x646f72616e646f6d;
  uint64_t v2 = key.a ^ 0x6c7967656e657261, v3 = key.b ^ 0x7465646279746573;
  // Forced inline: compilers prefer an out-of-line call, which would keep the four words in memory.
  auto round = [&]() __attribute__((always_inline)) {
    v0 += v1, v2 += v3, v1 = std::rotl(v1, 13), v3 = std::rotl(v3, 16), v1 ^= v0, v3 ^= v2, v0 = std::rotl(v0, 32);
    v2 += v1, v0 += v3, v1 = std::rotl(v1, 17), v3 = std::rotl(v3, 21), v1 ^= v2, v3 ^= v0, v2 = std::rotl(v2, 32);
  };
  auto take = [&](uint64_t word) __attribute__((always_inline)) {
    v3 ^= word;
    round();
    v0 ^= word;
  };
  size_t at = 0;
  for (; at + 8 <= text.size(); at += 8) {
    uint64_t word;
    std::memcpy(&word, text.data() + at, 8);
    take(word);
  }
  const size_t rest = text.size() - at;
  uint64_t last = 0;
  if (rest != 0 && at != 0) {
    std::memcpy(&last, text.data() + text.size() - 8, 8);  // its first bytes have been hashed already
    last >>= 8 * (8 - rest);
  } else {
    for (size_t i = 0; i < rest; ++i) last |= uint64_t(static_cast<unsigned char>(text[i])) << (8 * i);
  }
  take(uint64_t(text.size()) << 56 | last);
  v2 ^= 0xff;
  round(), round(), round();
  return v0 ^ v1 ^ v2 ^ v3;
}

// Hashes with the key of this process, which is drawn once.
inline uint64_t KeyedHash(std::string_view text) {
  static const HashKey key = [] {
    HashKey k{0x9e3779b97f4a7c15, reinterpret_cast<uintptr_t>(&k)};  // used if the system has no entropy
    if (getentropy(&k, sizeof k) != 0) k.b = reinterpret_cast<uintptr_t>(&k);
    return k;
  }();
  return KeyedHash(text, key);
}

}  // namespace thalweg
