// CancelToken: one caller's wish to stop, read by many. Threads: any.
#pragma once
#include <atomic>

namespace thalweg {

class CancelToken {
 public:
  void Cancel() { cancelled_.store(true, std::memory_order_release); }
  bool cancelled() const { return cancelled_.load(std::memory_order_acquire); }

 private:
  std::atomic<bool> cancelled_{false};
};

}  // namespace thalweg
