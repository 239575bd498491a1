// Poller: the Watch over a gRPC completion queue.
#pragma once
#include <grpc/grpc.h>
#include <grpc/support/time.h>

#include "watch.h"

namespace thalweg::grpc_transport {

// The tag of an operation on a completion queue.
class Event {
 public:
  virtual void Happen(bool ok) = 0;

 protected:
  ~Event() = default;
};

class Poller final : public Watch {
 public:
  // spin_us: microseconds that it polls after an event, before it sleeps.
  explicit Poller(int spin_us);
  // Returns when all pending events have been handled. REQUIRES: no new ones are added.
  ~Poller();
  grpc_completion_queue* queue() const { return queue_; }

 private:
  // An event without a cause, which wakes the thread at the queue.
  struct Bell final : Event {
    void Happen(bool) override {
      std::lock_guard lock(poller->mu_);
      rings = false;
    }
    Poller* poller = nullptr;
    grpc_channel* channel = nullptr;
    grpc_call* call = nullptr;
    bool rings = false;  // it is in the queue
  };
  bool Turn(Time until) override;
  void Ring() override;
  grpc_event Next(gpr_timespec until);
  const int spin_us_;
  grpc_completion_queue* const queue_;
  Bell bell_;
};

}  // namespace thalweg::grpc_transport
