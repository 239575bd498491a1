// Philox 4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC
// 2011). Block i of a stream is a pure function of key and counter, so any thread can compute any
// part. Seeds fill key and counter as in TensorFlow, so the streams are TensorFlow's.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_PHILOX_H_
#define THALWEG_PLUGINS_CPU_KERNELS_PHILOX_H_

#include <array>
#include <cstdint>

namespace thalweg::cpu {

class Philox {
 public:
  using Block = std::array<uint32_t, 4>;

  // seed is the key, seed2 the upper half of the counter.
  Philox(uint64_t seed, uint64_t seed2) : seed_(seed), high_(seed2) {}

  // Returns the same stream, `blocks` blocks further on.
  Philox After(uint64_t blocks) const {
    Philox p = *this;
    p.low_ += blocks;
    if (p.low_ < blocks) ++p.high_;
    return p;
  }

  Block Next() {
    const Block block = Mix({uint32_t(low_), uint32_t(low_ >> 32), uint32_t(high_), uint32_t(high_ >> 32)});
    if (++low_ == 0) ++high_;
    return block;
  }

 private:
  Block Mix(Block c) const {
    uint32_t key0 = uint32_t(seed_), key1 = uint32_t(seed_ >> 32);
    for (int round = 0; round < 10; ++round, key0 += 0x9E3779B9u, key1 += 0xBB67AE85u) {
      const uint64_t x = uint64_t{0xD2511F53u} * c[0], y = uint64_t{0xCD9E8D57u} * c[2];
      c = {uint32_t(y >> 32) ^ c[1] ^ key0, uint32_t(y), uint32_t(x >> 32) ^ c[3] ^ key1, uint32_t(x)};
    }
    return c;
  }

  uint64_t seed_, low_ = 0, high_;
};

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_PHILOX_H_
