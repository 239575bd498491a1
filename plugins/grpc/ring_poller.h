// RingPoller: the watch over the doorbell of this process, where peers on this machine ring when they have written into the rings that they
// share with it, or read so much that there is room again.
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
  // Who sees to a peer.
  class Listener {
   public:
    // The peer has rung, or may have. True: it has more to say than is good to hear at once.
    virtual bool Hear() = 0;

   protected:
    ~Listener() = default;
  };
  // NULL: there is no doorbell here, or no thread for it.
  static std::shared_ptr<RingPoller> Make(int spin_us);
  // REQUIRES: no listeners are left.
  ~RingPoller();
  const MemoryName& name() const { return bell_->name(); }
  // The number that its peer rings with; kRingers: there are too many. keep: what the listener lives in, which is asked before it hears.
  uint32_t Add(std::weak_ptr<void> keep, Listener* listener);
  // It may hear once more, if another thread is about to tell it.
  void Remove(uint32_t who);
  // As if it had rung.
  void Tell(uint32_t who) { bell_->Ring(who); }
  bool any() const { return listeners_n_.load(std::memory_order_relaxed) > 0; }

 private:
  struct Entry {
    std::weak_ptr<void> keep;
    Listener* listener = nullptr;  // NULL: nobody has this number
  };
  RingPoller(int spin_us, std::unique_ptr<Doorbell> bell) : spin_us_(spin_us), bell_(std::move(bell)) {}
  bool Turn(Time until) override;
  void Ring() override;
  bool Look();
  const int spin_us_;
  const std::unique_ptr<Doorbell> bell_;
  bool stop_ = false, rung_ = false;  // under mu_
  int waiters_ = 0;                   // likewise: threads that sleep, or are about to
  std::atomic<uint32_t> words_{0};    // of the doorbell that are in use
  std::atomic<uint32_t> listeners_n_{0};
  std::mutex listeners_mu_;
  std::vector<Entry> listeners_;
};

}  // namespace thalweg::grpc_transport
