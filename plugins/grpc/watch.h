// Watch: a thread that waits for events and handles them, and other threads that take its place
// while they have to wait anyway. Chores: a thread for work that must not be done in an event's
// handler.
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

// The own thread steps aside while another one is lent, and for a moment afterwards: a caller that
// waits for a step soon waits for the next one, and events would wake the own thread for nothing.
// It sleeps for that moment, and also while the same thread is lent for long.
class Watch {
 public:
  using Time = std::chrono::steady_clock::time_point;
  // See tw_transport_def.poll and wake.
  bool Lend(uint64_t ns, uint32_t (*over)(void* arg), void* arg);
  void Wake();
  // Work that can wait until the lent thread has returned and perhaps done it itself; otherwise it
  // is done after a millisecond or two.
  // MayDefer returns false if no thread would do the work.
  class Chore {
   public:
    virtual bool Expire(bool now) = 0;  // false: it is not due yet, and is to be asked again

   protected:
    ~Chore() = default;
  };
  bool MayDefer();
  // keep: owns the chore. REQUIRES: MayDefer, on this thread.
  void Defer(std::shared_ptr<void> keep, Chore* chore);

 protected:
  Watch() = default;
  ~Watch() = default;
  // For derived classes: Begin at the end of construction, Join before destruction.
  void Begin();  // throws if no thread can be started
  void Join() {
    if (thread_.joinable()) thread_.join();
  }
  // Waits until `until` for an event and handles it. Returns false if no more will come.
  virtual bool Turn(Time until) = 0;
  // Ends the current wait of every waiting thread. REQUIRES: mu_.
  virtual void Ring() = 0;
  std::mutex mu_;  // guards the members that follow

 private:
  void Run();
  void StepAside();
  void Expire(std::unique_lock<std::mutex>* lock, bool now);
  std::condition_variable changed_;
  bool lent_ = false;     // a thread is lent
  bool asked_ = false;    // Wake was called, and the lent thread has not looked since
  bool refused_ = false;  // a second thread was refused while one was lent
  bool aside_ = false;    // the own thread has stepped aside
  bool sleeps_ = false;   // the own thread waits to be told of the end of a loan
  std::thread::id lent_id_;
  std::vector<std::pair<std::shared_ptr<void>, Chore*>> deferred_;
  uint64_t lends_ = 0;      // number of loans
  Time left_, refused_at_;  // time of the last one
  std::thread thread_;
};

class Chores {
 public:
  Chores();
  ~Chores() { Stop(); }
  // An exception thrown by f is dropped.
  void Add(std::function<void()> f);
  // Runs f about a millisecond later: for work that comes with every call and must not wake a
  // thread each time.
  void AddSoon(std::function<void()> f);
  // Runs f repeatedly at that interval. REQUIRES: called once.
  void Every(std::chrono::milliseconds apart, std::function<void()> f);
  // Returns when all work is done.
  void Stop();

 private:
  void Run();
  std::mutex mu_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> todo_, soon_;
  std::chrono::steady_clock::time_point soon_at_ = std::chrono::steady_clock::time_point::max();  // when the thread looks at soon_
  std::chrono::milliseconds apart_{};
  std::function<void()> again_;  // empty for none
  std::chrono::steady_clock::time_point next_ = std::chrono::steady_clock::time_point::max();
  bool stop_ = false;
  std::thread thread_;
};

// While it exists, threads that this thread starts receive no signals.
class NoSignals {
 public:
  NoSignals();
  ~NoSignals();

 private:
  sigset_t before_;
};

}  // namespace thalweg::grpc_transport
