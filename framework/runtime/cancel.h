// CancelToken: a caller's request to stop, read by many threads. Threads: any.
#pragma once
#include <atomic>
#include <cstdint>

namespace thalweg {

class CancelToken {
 public:
  // Requests the stop, wakes the calls that wait at a resource in a step of this token, and calls the
  // functions that are to be called then (LaterCalls).
  void Cancel();
  bool cancelled() const { return cancelled_.load(); }

  // Counts calls that wait in a step of this token (see WaitingCalls), and functions to be called
  // when it is cancelled (see LaterCalls): 1 more or 1 less.
  void Watch(int32_t calls) const { waiting_.fetch_add(calls); }

 private:
  // A call increments waiting_ before it reads cancelled_, and Cancel sets cancelled_ before it
  // reads waiting_; so at least one of the two sees the other.
  std::atomic<bool> cancelled_{false};
  mutable std::atomic<int32_t> waiting_{0};
};

}  // namespace thalweg
