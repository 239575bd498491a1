// RingPoller: the Watch over the doorbell of this process. Peers on this machine ring it when they
// have written to a shared ring, or have made room in one.
// Threads: any.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "doorbell.h"
#include "watch.h"

namespace thalweg::grpc_transport {

class RingPoller final : public Watch {
 public:
  // Handles one peer.
  class Listener {
   public:
    // Called when the peer has rung, possibly spuriously. Returns true if there is more than should
    // be read at once.
    virtual bool Hear() = 0;

   protected:
    ~Listener() = default;
  };
  // Returns NULL if there is no doorbell here, or no thread for it.
  static std::shared_ptr<RingPoller> Make(int spin_us);
  // REQUIRES: no listeners are left.
  ~RingPoller();
  const MemoryName& name() const { return bell_->name(); }
  // Returns the number with which the peer rings; kRingers if there are too many. keep: owns the
  // listener; it is locked before each call.
  uint32_t Add(std::weak_ptr<void> keep, Listener* listener);
  // The listener may be called once more, if another thread is about to.
  void Remove(uint32_t who);
  // Acts as if the peer had rung.
  void Tell(uint32_t who) { bell_->Ring(who); }
  bool any() const { return listeners_n_.load(std::memory_order_relaxed) > 0; }

 private:
  struct Entry {
    std::weak_ptr<void> keep;
    Listener* listener = nullptr;  // NULL if the number is unused
  };
  RingPoller(int spin_us, std::unique_ptr<Doorbell> bell) : spin_us_(spin_us), bell_(std::move(bell)) {}
  bool Turn(Time until) override;
  void Ring() override;
  bool Look();
  const int spin_us_;
  const std::unique_ptr<Doorbell> bell_;
  bool stop_ = false, rung_ = false;  // guarded by mu_
  int waiters_ = 0;                   // guarded by mu_: threads that sleep, or are about to
  std::atomic<uint32_t> words_{0};    // words of the doorbell that are in use
  std::atomic<uint32_t> listeners_n_{0};
  std::mutex listeners_mu_;
  std::vector<Entry> listeners_;
};

}  // namespace thalweg::grpc_transport
