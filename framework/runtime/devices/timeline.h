// Timeline: the object behind tw_timeline: a counter that only grows, callbacks for values, and the
// first failure. Threads: any. Callbacks run on the signalling thread, outside the lock.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <vector>

#include "framework/base/status.h"
#include "thalweg/plugin/device.h"

struct tw_timeline {
 public:
  using Done = void (*)(void* arg, const tw_status* why);

  void Retain() { refs_.fetch_add(1, std::memory_order_relaxed); }
  void Release();
  void Signal(uint64_t value);
  void Fail(thalweg::Status why);
  void When(uint64_t value, Done done, void* arg);
  // Blocks until the value is reached; returns the failure, if there was one.
  thalweg::Status Wait(uint64_t value);
  uint64_t value() const { return value_.load(std::memory_order_acquire); }
  thalweg::Status failure() const;
  // Returns the time of the failure by Tick; 0 if there was none.
  uint64_t failed_at() const { return failed_at_.load(std::memory_order_acquire); }
  // Returns a larger number with each call; orders failures by the time at which they became known.
  static uint64_t Tick();

 private:
  struct Waiter {
    uint64_t value;
    Done done;
    void* arg;
  };
  ~tw_timeline();
  std::atomic<int32_t> refs_{1};
  std::atomic<uint64_t> value_{0}, failed_at_{0};
  mutable std::mutex mu_;
  std::condition_variable reached_;
  std::vector<Waiter> waiters_;
  tw_status* why_ = nullptr;
};
