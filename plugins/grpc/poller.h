// Poller: the thread that takes what happens at a completion queue. Chores: a thread for what must not happen where it is noticed.
#pragma once
#include <signal.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include <grpc/grpc.h>

namespace thalweg::grpc_transport {

// What a completion queue brings back.
class Event {
 public:
  virtual void Happen(bool ok) = 0;

 protected:
  ~Event() = default;
};

class Poller {
 public:
  // spin_us: microseconds that it looks again and again after something has happened, before it sleeps.
  explicit Poller(int spin_us);
  // Returns when all events have happened. REQUIRES: no new ones come.
  ~Poller();
  grpc_completion_queue* queue() const { return queue_; }

 private:
  void Run();
  grpc_event Next();
  const int spin_us_;
  grpc_completion_queue* const queue_;
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
