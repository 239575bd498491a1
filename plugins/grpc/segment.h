// Segment: memory that two processes of one user on one machine share, in slots, through which bodies go that are too big for the loopback
// interface. One side makes it and writes, the other one opens it and reads. It has no name in the file system, so whoever dies leaves
// nothing behind; nobody but the user can open it, and nobody can make it shorter. Threads: any; who may use which slot is its users'
// business.
#pragma once
#include <cstdint>
#include <memory>

namespace thalweg::grpc_transport {

constexpr uint32_t kSlots = 8;
constexpr uint64_t kSlotBytes = 1 << 20;

// How the other side finds it, as it goes over a line. The secret shows that what was found is what was meant.
struct SegmentName {
  int32_t process = 0, descriptor = 0;
  uint64_t secret[2] = {};
};

class Segment {
 public:
  // NULL: there is no such memory here.
  static std::unique_ptr<Segment> Make();
  // NULL: it cannot be reached, as from another user, container or machine, or is not what it should be.
  static std::unique_ptr<Segment> Open(const SegmentName& name);
  ~Segment();
  Segment(const Segment&) = delete;
  const SegmentName& name() const { return name_; }
  char* slot(uint32_t i) const { return memory_ + kHeader + i * kSlotBytes; }

 private:
  static constexpr uint64_t kHeader = 4096, kBytes = kHeader + kSlots * kSlotBytes;
  Segment(int descriptor, char* memory) : descriptor_(descriptor), memory_(memory) {}
  const int descriptor_;
  char* const memory_;
  SegmentName name_;
};

}  // namespace thalweg::grpc_transport
