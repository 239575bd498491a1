// A step that holds one kernel call outside any plan. Threads: the one that waits, and the one on
// which an asynchronous call ends.
#pragma once
#include <condition_variable>
#include <mutex>
#include <utility>

#include "framework/runtime/step/frame.h"

namespace thalweg {

struct OneCallStep final : StepBase {
  void Complete(uint64_t, Status s) override {
    std::lock_guard lock(mu);
    status = std::move(s);
    done = true;
    over.notify_all();
  }
  Status Wait() {
    std::unique_lock lock(mu);
    over.wait(lock, [&] { return done; });
    return status;
  }
  std::mutex mu;
  std::condition_variable over;
  bool done = false;
  Status status;
};

}  // namespace thalweg
