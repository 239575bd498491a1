// The random bits of a node with seeds: a stream of its own, of which every execute takes the next part.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_RANDOM_STREAM_H_
#define THALWEG_PLUGINS_CPU_KERNELS_RANDOM_STREAM_H_

#include <atomic>
#include <random>

#include "kernels/philox.h"
#include "thalweg/cpp/plugin.hpp"

namespace thalweg::cpu {

// Starts where the attributes seed and seed2 say; both 0 mean seeds from the operating system. Concurrent executes get parts of their own.
class RandomStream {
 public:
  explicit RandomStream(const tw::Node& n) : start_(0, 0) {
    uint64_t seed = uint64_t(n.i("seed")), seed2 = uint64_t(n.i("seed2"));
    if (seed == 0 && seed2 == 0) {
      std::random_device device;
      seed = (uint64_t{device()} << 32) | device();
      seed2 = (uint64_t{device()} << 32) | device();
    }
    start_ = Philox(seed, seed2);
  }
  // The next `blocks` blocks.
  Philox Take(uint64_t blocks) const { return start_.After(taken_.fetch_add(blocks, std::memory_order_relaxed)); }

 private:
  Philox start_;
  mutable std::atomic<uint64_t> taken_{0};
};

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_RANDOM_STREAM_H_
