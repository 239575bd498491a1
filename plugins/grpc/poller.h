// Poller: the thread that takes what happens at a completion queue. Chores: a thread for what must not happen where it is noticed.
#pragma once
#include <signal.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <grpc/grpc.h>
#include <grpc/support/time.h>

namespace thalweg::grpc_transport {

// What a completion queue brings back.
class Event {
 public:
  virtual void Happen(bool ok) = 0;

 protected:
  ~Event() = default;
};

// Its own thread steps aside while another one is lent, and for a moment afterwards, since who waits for a step soon waits for the next: an
// event would wake it for nothing. The moment is a sleep, and so is what follows while the same thread is lent for long.
class Poller {
 public:
  // spin_us: microseconds that it looks again and again after something has happened, before it sleeps.
  explicit Poller(int spin_us);
  // Returns when all events have happened. REQUIRES: no new ones come.
  ~Poller();
  grpc_completion_queue* queue() const { return queue_; }
  // See tw_transport_def.poll and wake.
  bool Lend(uint64_t ns, uint32_t (*over)(void* arg), void* arg);
  void Wake();
  // Something that can wait until this thread, which is lent, has gone on and maybe seen to it itself; else it is done after a millisecond
  // or two. False: there is nobody to do it.
  class Chore {
   public:
    virtual bool Expire(bool now) = 0;  // false: its time has not come, it is to be asked again

   protected:
    ~Chore() = default;
  };
  bool MayDefer();
  // keep: what the chore lives in. REQUIRES: MayDefer, on this thread.
  void Defer(std::shared_ptr<void> keep, Chore* chore);

 private:
  using Time = std::chrono::steady_clock::time_point;
  // An event without a cause, for who looks at the queue.
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
  void Run();
  bool Take(grpc_event e);
  void StepAside();
  void Expire(std::unique_lock<std::mutex>* lock, bool now);
  void Ring();
  grpc_event Next(gpr_timespec until);
  const int spin_us_;
  grpc_completion_queue* const queue_;
  Bell bell_;
  std::mutex mu_;  // what follows
  std::condition_variable changed_;
  bool lent_ = false;     // a thread is
  bool asked_ = false;    // by Wake, and it has not looked since
  bool refused_ = false;  // another one was, while it was
  bool aside_ = false;    // the own thread is
  bool sleeps_ = false;   // until it is told of the end
  std::thread::id lent_id_;
  std::vector<std::pair<std::shared_ptr<void>, Chore*>> deferred_;
  uint64_t lends_ = 0;      // how often one was
  Time left_, refused_at_;  // when last
  std::thread thread_;
};

class Chores {
 public:
  Chores();
  ~Chores() { Stop(); }
  void Add(std::function<void()> f);
  // Returns when all are done.
  void Stop();

 private:
  void Run();
  std::mutex mu_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> todo_;
  bool stop_ = false;
  std::thread thread_;
};

// While it lives, threads that this one makes get no signals.
class NoSignals {
 public:
  NoSignals();
  ~NoSignals();

 private:
  sigset_t before_;
};
// A thread that no signal comes to.
std::thread QuietThread(std::function<void()> f);

}  // namespace thalweg::grpc_transport
