// Origin: the process in which something was made. A child that is forked has a copy of it, and none of the threads that it lives by; its
// locks may be held by threads that are not there. Threads: any.
#pragma once
#include <pthread.h>

#include <atomic>
#include <cstdint>

namespace thalweg {

class Origin {
 public:
  // False: this process is a child of that one.
  bool here() const { return forks_ == Forks().load(std::memory_order_relaxed); }

 private:
  // How often it was forked on the way to this process.
  static std::atomic<uint32_t>& Forks() {
    static std::atomic<uint32_t> forks{0};
    static const int asked = pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });
    (void)asked;  // fails where there is no memory: then a child is not told apart
    return forks;
  }
  const uint32_t forks_ = Forks().load(std::memory_order_relaxed);
};

}  // namespace thalweg
