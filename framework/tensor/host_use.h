// HostUse: the bytes of host memory that buffers of all pools in this process have in use, and their
// peak. tw_devices_memory_use reports them for devices whose memory is host memory. Threads: any,
// without a lock.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>

namespace thalweg {

class HostUse {
 public:
  static void Take(uint64_t bytes) {
    const uint64_t now = now_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    uint64_t peak = peak_.load(std::memory_order_relaxed);
    while (now > peak && !peak_.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
    }
  }
  static void Give(uint64_t bytes) { now_.fetch_sub(bytes, std::memory_order_relaxed); }

  struct Bytes {
    uint64_t now, peak;
  };
  static Bytes Read() {
    const uint64_t now = now_.load(std::memory_order_relaxed);
    return {now, std::max(now, peak_.load(std::memory_order_relaxed))};  // another thread may not have raised the peak yet
  }

 private:
  static inline std::atomic<uint64_t> now_{0}, peak_{0};
};

}  // namespace thalweg
