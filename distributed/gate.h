// Gate: admits calls into an object that will end. Once it is closed no call enters, and Close
// returns when the last call has left. Threads: any.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace thalweg::distributed {

class Gate {
 public:
  // A visit; false if the gate is closed.
  class Pass {
   public:
    explicit Pass(Gate* gate) : gate_(gate->Enter() ? gate : nullptr) {}
    ~Pass() {
      if (gate_) gate_->Leave();
    }
    Pass(const Pass&) = delete;
    explicit operator bool() const { return gate_ != nullptr; }

   private:
    Gate* const gate_;
  };
  // A second call has no effect. REQUIRES: this thread is not inside.
  void Close() {
    std::unique_lock lock(mu_);
    closed_ = true;
    left_.wait(lock, [this] { return inside_ == 0; });
  }

 private:
  bool Enter() {
    std::lock_guard lock(mu_);
    if (!closed_) ++inside_;
    return !closed_;
  }
  void Leave() {
    std::lock_guard lock(mu_);
    if (--inside_ == 0 && closed_) left_.notify_all();
  }
  std::mutex mu_;
  std::condition_variable left_;
  uint64_t inside_ = 0;
  bool closed_ = false;
};

}  // namespace thalweg::distributed
