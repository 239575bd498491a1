// Key and counter of the stateless random ops from two seeds, as TensorFlow derives them: by one block
// of Philox over the seeds, so neither seed has to be random.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_SEED_KEY_H_
#define THALWEG_PLUGINS_CPU_KERNELS_SEED_KEY_H_

#include "kernels/philox.h"

namespace thalweg::cpu {

struct SeedKey {
  uint64_t key, counter;  // counter: its second number; the first is 0
};

inline SeedKey KeyOf(int64_t seed, int64_t seed2) {
  constexpr uint64_t kMixer = 0x02461e293ec8f720;
  const Philox::Block mixed = Philox(kMixer, uint64_t(seed2)).After(uint64_t(seed)).Next();
  const auto joined = [&mixed](size_t low) { return uint64_t(mixed[low + 1]) << 32 | mixed[low]; };
  return {joined(0), joined(2)};
}

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_SEED_KEY_H_
