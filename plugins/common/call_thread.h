// CallThread: executes the calls of a group one after the other on a thread of its own, which starts
// with the first call.
// Threads: any, except for the destructor.
#ifndef THALWEG_PLUGINS_COMMON_CALL_THREAD_H_
#define THALWEG_PLUGINS_COMMON_CALL_THREAD_H_

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#include "collective_call.h"
#include "thread.h"

namespace thalweg::common {

class CallThread {
 public:
  // run: executes a call and returns its failure; throws nothing.
  CallThread(const tw_host* host, std::function<Failed(const CollectiveCall&)> run) : host_(host), run_(std::move(run)) {}
  ~CallThread() { End(); }
  CallThread(const CallThread&) = delete;

  // Ends the thread when the calls that were added are over. Add must not be called any more.
  void End() {
    {
      std::lock_guard lock(mu_);
      ending_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

  void Add(CollectiveCall call) {
    std::lock_guard lock(mu_);
    if (!thread_.joinable()) thread_ = StartThread([this] { Loop(); });
    waiting_.push_back(std::move(call));
    Keep(host_, waiting_.back());
    changed_.notify_all();
  }
  // Returns true if no call is waiting or running.
  bool idle() const {
    std::lock_guard lock(mu_);
    return !running_ && waiting_.empty();
  }

 private:
  void Loop() {
    std::unique_lock lock(mu_);
    for (;;) {
      changed_.wait(lock, [this] { return ending_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      const CollectiveCall call = std::move(waiting_.front());
      waiting_.pop_front();
      running_ = true;
      lock.unlock();
      const Failed how = run_(call);
      // Before the end is reported, because its receiver may make the next call or destroy the group.
      lock.lock();
      running_ = false;
      lock.unlock();
      Finish(host_, call, how);
      lock.lock();
    }
  }

  const tw_host* const host_;
  const std::function<Failed(const CollectiveCall&)> run_;
  mutable std::mutex mu_;  // guards the fields below
  std::condition_variable changed_;
  std::deque<CollectiveCall> waiting_;
  bool running_ = false, ending_ = false;
  std::thread thread_;
};

}  // namespace thalweg::common

#endif  // THALWEG_PLUGINS_COMMON_CALL_THREAD_H_
