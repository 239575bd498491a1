// Doorbell: a process sleeps at its doorbell, and other processes of the machine ring it. Each
// ringer has a number, which it sets when it rings, so that the woken process knows which peers to
// look at. Ringing makes no system call unless a thread sleeps. Threads: any.
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

  // Rings with number `who`. REQUIRES: who < kRingers.
  void Ring(uint32_t who);
  // Wakes all threads that sleep or are about to, without a number.
  void Wake();

  // For the owner: takes the numbers in a word that have rung since the last call, 64 to the word.
  uint64_t Take(uint32_t word) { return bells().rung[word].load(std::memory_order_relaxed) ? bells().rung[word].exchange(0) : 0; }
  bool rung(uint32_t words) const;
  // From now until Stay, a ring wakes all sleeping threads, once.
  void Settle() { bells().sleeps.store(1); }
  void Stay() { bells().sleeps.store(0); }
  // Sleeps until a ring or a timeout; may also wake spuriously. Returns at once if the bell has
  // rung since Settle.
  void Sleep(std::chrono::nanoseconds most);

 private:
  struct Bells {
    alignas(64) std::atomic<uint32_t> sleeps{0};  // 1: a thread sleeps
    alignas(64) std::atomic<uint64_t> rung[kRingers / 64];
  };
  explicit Doorbell(std::unique_ptr<SharedMemory> memory) : memory_(std::move(memory)) {}
  static std::unique_ptr<Doorbell> Of(std::unique_ptr<SharedMemory> memory);
  Bells& bells() const { return *reinterpret_cast<Bells*>(memory_->data()); }
  const std::unique_ptr<SharedMemory> memory_;
};

}  // namespace thalweg::grpc_transport
