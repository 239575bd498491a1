// Gate: blocks a stream from outside.
// Threads: one.
#pragma once
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "tools/conformance/queue.h"

namespace thalweg::conformance {

// Blocks a stream while it lives, but at most 300 ms, so that a kernel that waits for its own work in
// execute is not blocked for ever.
class Gate {
 public:
  Status Hold(Stream* stream) {
    RETURN_IF_ERROR(stream->WaitFor(line_.get(), 1));
    opens_ = std::thread([this] {
      std::unique_lock lock(mu_);
      over_.wait_for(lock, std::chrono::milliseconds(300), [this] { return open_; });
      line_->Signal(1);
    });
    return Status();
  }
  ~Gate() {
    {
      std::lock_guard lock(mu_);
      open_ = true;
    }
    over_.notify_all();
    if (opens_.joinable()) opens_.join();
  }

 private:
  Line line_ = NewLine();
  std::mutex mu_;
  std::condition_variable over_;
  bool open_ = false;
  std::thread opens_;
};

}  // namespace thalweg::conformance
