// The time, and what is to happen at a time: an interface, so that a simulation can turn the clock. Threads: any.
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
  // Calls f once, not before that time, on a thread that it must not hold for long; never inside this call. Answers a name for it.
  virtual uint64_t At(int64_t ns, std::function<void()> f) = 0;
  // f is not called any more, unless its call has begun.
  virtual void Forget(uint64_t name) = 0;
  // From now on nothing is called; returns when what runs is over. Again: no effect.
  virtual void Stop() = 0;
  uint64_t Soon(std::function<void()> f) { return At(0, std::move(f)); }
};

// One thread. Stop drops what is still to come.
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
  std::map<std::pair<int64_t, uint64_t>, std::function<void()>> todo_;  // by time, then in the order of the calls
  std::map<uint64_t, int64_t> times_;
  uint64_t names_ = 0;
  int64_t sleeps_until_ = 0;  // its thread; 0: it does not sleep, and looks before it does
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace thalweg::distributed
