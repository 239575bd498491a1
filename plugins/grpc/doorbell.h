// Doorbell: what a process sleeps at, and others of its machine ring. Each of them has a number there, which it leaves when it rings, so
// that who wakes up knows whom to see. Who rings asks the kernel for nothing unless somebody sleeps. Threads: any.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>

#include "shared_memory.h"

namespace thalweg::grpc_transport {

constexpr uint32_t kRingers = 4096;

class Doorbell {
 public:
  // NULL: see SharedMemory.
  static std::unique_ptr<Doorbell> Make();
  static std::unique_ptr<Doorbell> Open(const MemoryName& name);
  const MemoryName& name() const { return memory_->name(); }

  // Of who rings. REQUIRES: who < kRingers.
  void Ring(uint32_t who);
  // Wakes all who sleep, and who is about to: without a number.
  void Wake();

  // Of whose it is: a word of numbers that have rung since it was taken last, 64 to the word.
  uint64_t Take(uint32_t word) { return bells().rung[word].load(std::memory_order_relaxed) ? bells().rung[word].exchange(0) : 0; }
  bool rung(uint32_t words) const;
  // Who rings from now on wakes whoever sleeps, once; until Stay.
  void Settle() { bells().sleeps.store(1); }
  void Stay() { bells().sleeps.store(0); }
  // Until it rings, or then, or for no reason. Returns at once if it has rung since Settle.
  void Sleep(std::chrono::nanoseconds most);

 private:
  struct Bells {
    alignas(64) std::atomic<uint32_t> sleeps{0};  // 1: somebody does
    alignas(64) std::atomic<uint64_t> rung[kRingers / 64];
  };
  explicit Doorbell(std::unique_ptr<SharedMemory> memory) : memory_(std::move(memory)) {}
  static std::unique_ptr<Doorbell> Of(std::unique_ptr<SharedMemory> memory);
  Bells& bells() const { return *reinterpret_cast<Bells*>(memory_->data()); }
  const std::unique_ptr<SharedMemory> memory_;
};

}  // namespace thalweg::grpc_transport
