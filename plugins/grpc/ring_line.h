// RingLine: traffic between two processes of one machine through two rings in shared memory, one
// per direction, after a line has proven their identities. Frames are packed into records; if a
// ring is full, they wait until its reader makes room. Threads: as Outbox. Incoming records are
// read under the connection's reading lock.
#pragma once
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "outbox.h"
#include "ring.h"
#include "ring_poller.h"
#include "shared_memory.h"

namespace thalweg::grpc_transport {

// The location of one side's memory, as sent over a line.
struct RingNames {
  MemoryName rings;  // of the called side; the caller has none
  MemoryName bell;
  uint32_t number = 0;  // the number with which the receiver of this message rings the bell
  uint32_t reserved = 0;
};

class RingLine final : public Outbox, public RingPoller::Listener {
 public:
  // For the called side: makes the rings; Meet follows later. *out_names: the message for the other
  // side. Returns NULL if there is no shared memory here, or too many peers use it already.
  static std::unique_ptr<RingLine> Make(Connection* connection, std::shared_ptr<RingPoller> poller, RingNames* out_names);
  // For the caller. Returns NULL if the rings cannot be opened; see SharedMemory.
  static std::unique_ptr<RingLine> Open(Connection* connection, std::shared_ptr<RingPoller> poller, const RingNames& theirs,
                                        RingNames* out_names);
  ~RingLine() override;
  RingLine(const RingLine&) = delete;
  // Returns false if the caller's bell cannot be rung; then nothing is sent through the rings.
  // theirs: NULL if the caller declined.
  bool Meet(const RingNames* theirs);
  // REQUIRES: the lock. The other side reads the ring that this side writes.
  void Use() { in_use_ = true; }
  bool in_use() const { return in_use_; }
  void Write() override;
  bool Hear() override;

 private:
  RingLine(Connection* connection, std::shared_ptr<RingPoller> poller, std::unique_ptr<SharedMemory> memory, bool maker);
  bool Register(RingNames* out_names);
  void Leave();
  bool Read();
  void Send(bool from_entry);
  void GiveUp();
  void Flush(bool from_entry);
  const std::shared_ptr<RingPoller> poller_;
  const std::unique_ptr<SharedMemory> memory_;
  RingWriter out_;                   // guarded by the lock
  RingReader in_;                    // guarded by the reading lock
  uint32_t number_ = kRingers;       // with which the other side rings; kRingers: none
  std::unique_ptr<Doorbell> there_;  // of the other side; never replaced once set
  uint32_t number_there_ = 0;
  bool in_use_ = false, failed_ = false;
  std::thread::id reader_;  // the reading thread, guarded by the lock; default if none
};

}  // namespace thalweg::grpc_transport
