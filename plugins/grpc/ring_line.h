// RingLine: what goes between two processes of one machine by way of two rings in memory that they share, one for each direction, once a
// line has said who they are. Frames are gathered in records; where a ring is full, they wait until its reader has made room. Threads: see
// Outbox. What comes is read under the connection's lock for reading.
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

// How a side finds the other one's memory, as it goes over a line.
struct RingNames {
  MemoryName rings;  // of who was called; the other one has none
  MemoryName bell;
  uint32_t number = 0;  // which the reader of this rings it with
  uint32_t reserved = 0;
};

class RingLine final : public Outbox, public RingPoller::Listener {
 public:
  // Who was called makes the rings, and meets who called later. *out_names: what the other side needs to know.
  // NULL: there is no such memory here, or too many share some already.
  static std::unique_ptr<RingLine> Make(Connection* connection, std::shared_ptr<RingPoller> poller, RingNames* out_names);
  // Who called. NULL: they cannot be reached; see SharedMemory.
  static std::unique_ptr<RingLine> Open(Connection* connection, std::shared_ptr<RingPoller> poller, const RingNames& theirs,
                                        RingNames* out_names);
  ~RingLine() override;
  RingLine(const RingLine&) = delete;
  // False: who called cannot be rung; nothing goes this way then. theirs: NULL: they do not want to.
  bool Meet(const RingNames* theirs);
  // REQUIRES: the lock. The other side reads what is written here.
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
  RingWriter out_;                   // under the lock
  RingReader in_;                    // under the lock for reading
  uint32_t number_ = kRingers;       // which the other side rings with; kRingers: none
  std::unique_ptr<Doorbell> there_;  // of the other side; stays once it is there
  uint32_t number_there_ = 0;
  bool in_use_ = false, failed_ = false;
  std::thread::id reader_;  // who reads, under the lock; none: nobody
};

}  // namespace thalweg::grpc_transport
