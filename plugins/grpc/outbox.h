// Outbox: what is to go out one way, and how it becomes frames. Messages take turns with their bodies; what is said of them goes before.
// Threads: the connection's lock guards it; Write takes it.
#pragma once
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "exchange.h"
#include "frame.h"

namespace thalweg::grpc_transport {

// Where frames go, together.
class Package {
 public:
  // REQUIRES: n <= room().
  virtual void Copy(const void* bytes, uint64_t n) = 0;
  // A part of x's body. REQUIRES: as Copy.
  virtual void Body(const std::shared_ptr<Exchange>& x, const char* bytes, uint64_t n) = 0;
  uint64_t room() const { return room_; }

 protected:
  explicit Package(uint64_t room) : room_(room) {}
  ~Package() = default;
  void Used(uint64_t n) { room_ -= n; }

 private:
  uint64_t room_;
};

class Outbox {
 public:
  virtual ~Outbox() = default;
  // REQUIRES: the lock.
  void Queue(std::shared_ptr<Exchange> x) {
    if (!x->shared) waiting_ += x->out.bytes;
    ready_.push_back(std::move(x));
  }
  // A frame without a body, which goes before what is queued.
  void QueueNote(Kind kind, uint64_t id, uint64_t bytes = 0, std::string_view head = {}) {
    const Frame f = {kind, 0, uint16_t(head.size()), 0, id, bytes};
    notes_.append(reinterpret_cast<const char*>(&f), sizeof f).append(head);
  }
  // Asked from time to time, the lock held. True: something has waited since that many looks ago, and nothing went out.
  bool Stuck(int looks) {
    if (empty() || std::exchange(seen_, packed_) != packed_) return still_ = 0, false;
    return ++still_ >= looks;
  }
  // No lock held. Sends what is queued, now or as soon as it can.
  virtual void Write() = 0;

 protected:
  explicit Outbox(Connection* connection) : connection_(connection) {}
  // REQUIRES: the lock. What fits; answers whose last byte that is are added to out_answers.
  void Pack(Package* package, std::vector<std::shared_ptr<Exchange>>* out_answers);
  bool empty() const { return notes_.empty() && ready_.empty(); }
  uint64_t waiting() const { return waiting_; }  // bytes of bodies that are queued, and not packed
  Connection* const connection_;

 private:
  void PackNotes(Package* package);
  std::string notes_;  // frames
  std::deque<std::shared_ptr<Exchange>> ready_;
  uint64_t waiting_ = 0;
  uint64_t packed_ = 0, seen_ = 0;  // how often something was; that at the last look
  int still_ = 0;                   // looks since
};

}  // namespace thalweg::grpc_transport
