// Clock: the time, and calls at a given time. It is an interface, so that a simulation can advance
// the clock. Threads: any.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

namespace thalweg::distributed {

class Clock {
 public:
  virtual ~Clock() = default;
  virtual int64_t Now() const = 0;  // monotonic, nanoseconds
  // Calls f once, not before that time, on a thread that f must not hold for long; never calls f
  // from inside At. Returns a name for Forget.
  virtual uint64_t At(int64_t ns, std::function<void()> f) = 0;
  // Cancels the call of f unless it has begun.
  virtual void Forget(uint64_t name) = 0;
  // Makes no further calls; returns when the running ones have returned. A second call has no
  // effect.
  virtual void Stop() = 0;
  uint64_t Soon(std::function<void()> f) { return At(0, std::move(f)); }
};

// Runs calls on one thread. Stop drops the pending ones.
class SystemClock final : public Clock {
 public:
  SystemClock();
  ~SystemClock() override;
  int64_t Now() const override;
  uint64_t At(int64_t ns, std::function<void()> f) override;
  void Forget(uint64_t name) override;
  void Stop() override;

 private:
  void Work();
  std::mutex mu_;
  std::condition_variable changed_;
  std::map<std::pair<int64_t, uint64_t>, std::function<void()>> todo_;  // by time, then in the order of the calls to At
  std::map<uint64_t, int64_t> times_;
  uint64_t names_ = 0;
  int64_t sleeps_until_ = 0;  // when the thread wakes; 0: it is awake, and checks the calls before it sleeps
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace thalweg::distributed
