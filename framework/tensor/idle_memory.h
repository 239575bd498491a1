// IdleMemory: host memory that the process holds but does not use: buffers that pools cache and
// freed memory that the heap retains. No account pays for it. If an account has a limit, the
// account's use and the idle memory together are kept below that limit. Threads: any.
#pragma once
#include <atomic>
#include <cstdint>

namespace thalweg {

class MemoryPool;

class IdleMemory {
 public:
  // One pool's count of cached bytes. Records are never freed, so that they can be read without a
  // lock.
  struct Kept {
    std::atomic<uint64_t> bytes{0};
    MemoryPool* pool = nullptr;
    Kept* next = nullptr;
  };
  static Kept* Join(MemoryPool* pool);
  static void Leave(Kept* kept);

  // Returns an upper bound of the idle bytes.
  static uint64_t bytes();
  // Reports that `bytes` were freed, which the heap may still hold.
  static void Freed(uint64_t bytes) { freed_.fetch_add(bytes, std::memory_order_relaxed); }
  // Returns idle memory beyond `most` bytes to the system: the heap's first, then the pools'. If
  // there is no excess, a call costs a few loads.
  static void KeepAtMost(uint64_t most) {
    if (most == UINT64_MAX || bytes() <= most) return;
    GiveBack(most);
  }
  // Limits only the memory that the heap retains.
  static void HeapKeepsAtMost(uint64_t most);
  // Returns all idle memory to the system.
  static void GiveBackAll();

 private:
  static void GiveBack(uint64_t most);
  static inline std::atomic<uint64_t> freed_{0};
  static inline std::atomic<Kept*> all_{nullptr};
};

}  // namespace thalweg
