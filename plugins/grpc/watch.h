// Watch: a thread that waits for what happens and does what follows, and others that take its place while they have to wait anyway. Chores:
// a thread for what must not happen where it is noticed.
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

namespace thalweg::grpc_transport {

// Its own thread steps aside while another one is lent, and for a moment afterwards, since who waits for a step soon waits for the next:
// what happens would wake it for nothing. The moment is a sleep, and so is what follows while the same thread is lent for long.
class Watch {
 public:
  using Time = std::chrono::steady_clock::time_point;
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

 protected:
  Watch() = default;
  ~Watch() = default;
  // Of those that are whole, and before they are not.
  void Begin();  // throws where there is no thread to be had
  void Join() {
    if (thread_.joinable()) thread_.join();
  }
  // Waits, until then, for something to happen, and does what follows. False: nothing more will come.
  virtual bool Turn(Time until) = 0;
  // Ends a wait of each thread that waits now. REQUIRES: mu_.
  virtual void Ring() = 0;
  std::mutex mu_;  // what follows

 private:
  void Run();
  void StepAside();
  void Expire(std::unique_lock<std::mutex>* lock, bool now);
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
  // What f throws is its own loss.
  void Add(std::function<void()> f);
  // The same a millisecond later or so: for what comes with every call, and must not wake a thread for each.
  void AddSoon(std::function<void()> f);
  // f, again and again, that far apart. REQUIRES: once.
  void Every(std::chrono::milliseconds apart, std::function<void()> f);
  // Returns when all are done.
  void Stop();

 private:
  void Run();
  std::mutex mu_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> todo_, soon_;
  std::chrono::steady_clock::time_point soon_at_ = std::chrono::steady_clock::time_point::max();  // when the thread looks at soon_
  std::chrono::milliseconds apart_{};
  std::function<void()> again_;  // none: nothing is
  std::chrono::steady_clock::time_point next_ = std::chrono::steady_clock::time_point::max();
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

}  // namespace thalweg::grpc_transport
