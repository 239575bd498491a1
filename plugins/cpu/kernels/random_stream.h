// The random bits of a node with seeds. Each node has a stream of its own, and every execution
// takes the next part of it.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_RANDOM_STREAM_H_
#define THALWEG_PLUGINS_CPU_KERNELS_RANDOM_STREAM_H_

#include <atomic>
#include <random>

#include "kernels/philox.h"
#include "thalweg/cpp/plugin.hpp"

namespace thalweg::cpu {

// The stream starts at the attributes seed and seed2. If both are 0, the seeds come from the
// operating system. Concurrent executions get separate parts.
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
  // Returns the stream at the next `blocks` blocks, and reserves these blocks.
  Philox Take(uint64_t blocks) const { return start_.After(taken_.fetch_add(blocks, std::memory_order_relaxed)); }

 private:
  Philox start_;
  mutable std::atomic<uint64_t> taken_{0};
};

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_RANDOM_STREAM_H_
