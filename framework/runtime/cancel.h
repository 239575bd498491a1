// CancelToken: one caller's wish to stop, read by many. Threads: any.
#pragma once
#include <atomic>
#include <cstdint>

namespace thalweg {

class CancelToken {
 public:
  // Calls that wait at a resource in a step of this token end now.
  void Cancel();
  bool cancelled() const { return cancelled_.load(); }

  // One more call, or one less, waits in a step of this token (see WaitingCalls).
  void Watch(int32_t calls) const { waiting_.fetch_add(calls); }

 private:
  // A call says that it waits before it looks at the wish, and the wish is there before anybody looks for calls: one sees the other.
  std::atomic<bool> cancelled_{false};
  mutable std::atomic<int32_t> waiting_{0};
};

}  // namespace thalweg
