// IdleMemory: host memory that the process holds and nobody uses: what pools keep for the next who asks, and what the heap keeps of what
// was freed. It belongs to no account, but where an account has a limit the two together stay below it. Threads: any.
#pragma once
#include <atomic>
#include <cstdint>

namespace thalweg {

class MemoryPool;

class IdleMemory {
 public:
  // Where a pool says how much it keeps; never freed, so that it can be read without a lock.
  struct Kept {
    std::atomic<uint64_t> bytes{0};
    MemoryPool* pool = nullptr;
    Kept* next = nullptr;
  };
  static Kept* Join(MemoryPool* pool);
  static void Leave(Kept* kept);

  // An upper bound.
  static uint64_t bytes();
  // So much was freed that the heap may still hold.
  static void Freed(uint64_t bytes) { freed_.fetch_add(bytes, std::memory_order_relaxed); }
  // What is beyond goes back to the system: what the heap keeps before what pools keep. Where there is no more it costs a few loads.
  static void KeepAtMost(uint64_t most) {
    if (most == UINT64_MAX || bytes() <= most) return;
    GiveBack(most);
  }
  // The same of what the heap keeps alone.
  static void HeapKeepsAtMost(uint64_t most);
  // All of it.
  static void GiveBackAll();

 private:
  static void GiveBack(uint64_t most);
  static inline std::atomic<uint64_t> freed_{0};
  static inline std::atomic<Kept*> all_{nullptr};
};

}  // namespace thalweg
