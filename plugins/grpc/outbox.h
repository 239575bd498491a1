// Outbox: a queue of outgoing messages, which it packs into frames. The bodies of messages
// alternate; frames without a body go first.
// Threads: guarded by the connection's lock; Write takes it.
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

// A destination of frames that are sent together.
class Package {
 public:
  // REQUIRES: n <= room().
  virtual void Copy(const void* bytes, uint64_t n) = 0;
  // Adds a part of x's body. REQUIRES: as for Copy.
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
  // Adds a frame without a body, which is sent before the queued messages.
  void QueueNote(Kind kind, uint64_t id, uint64_t bytes = 0, std::string_view head = {}) {
    const Frame f = {kind, 0, uint16_t(head.size()), 0, id, bytes};
    notes_.append(reinterpret_cast<const char*>(&f), sizeof f).append(head);
  }
  // Called periodically with the lock held. Returns true if data have waited for `looks` calls and
  // nothing was sent.
  bool Stuck(int looks) {
    if (empty() || std::exchange(seen_, packed_) != packed_) return still_ = 0, false;
    return ++still_ >= looks;
  }
  // Sends the queued messages, now or as soon as possible. REQUIRES: the lock is not held.
  virtual void Write() = 0;

 protected:
  explicit Outbox(Connection* connection) : connection_(connection) {}
  // Packs what fits; adds answers whose last byte is packed to out_answers. REQUIRES: the lock.
  void Pack(Package* package, std::vector<std::shared_ptr<Exchange>>* out_answers);
  bool empty() const { return notes_.empty() && ready_.empty(); }
  uint64_t waiting() const { return waiting_; }  // bytes of bodies that are queued, and not packed
  Connection* const connection_;

 private:
  void PackNotes(Package* package);
  std::string notes_;  // frames
  std::deque<std::shared_ptr<Exchange>> ready_;
  uint64_t waiting_ = 0;
  uint64_t packed_ = 0, seen_ = 0;  // number of Pack calls; that number at the last look
  int still_ = 0;                   // looks without progress
};

}  // namespace thalweg::grpc_transport
