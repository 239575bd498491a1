// Segment: shared memory in slots, for bodies that are too large for the loopback interface. One
// side makes it and writes, the other side opens it and reads. Threads: any; its users decide which
// slot each may use.
#pragma once
#include <cstdint>
#include <memory>
#include <utility>

#include "shared_memory.h"

namespace thalweg::grpc_transport {

constexpr uint32_t kSlots = 8;
constexpr uint64_t kSlotBytes = 1 << 20;

class Segment {
 public:
  // NULL: see SharedMemory.
  static std::unique_ptr<Segment> Make() { return Of(SharedMemory::Make(kBytes)); }
  static std::unique_ptr<Segment> Open(const MemoryName& name) { return Of(SharedMemory::Open(name, kBytes, false)); }
  const MemoryName& name() const { return memory_->name(); }
  void Hide() { memory_->Hide(); }
  char* slot(uint32_t i) const { return memory_->data() + i * kSlotBytes; }

 private:
  static constexpr uint64_t kBytes = kSlots * kSlotBytes;
  explicit Segment(std::unique_ptr<SharedMemory> memory) : memory_(std::move(memory)) {}
  static std::unique_ptr<Segment> Of(std::unique_ptr<SharedMemory> memory) {
    return memory ? std::unique_ptr<Segment>(new Segment(std::move(memory))) : nullptr;
  }
  const std::unique_ptr<SharedMemory> memory_;
};

}  // namespace thalweg::grpc_transport
