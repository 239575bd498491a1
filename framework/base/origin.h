// Origin: remembers the process in which an object was created. A forked child has a copy of the
// object but none of the threads that serve it, and the copied locks may be held by threads that do
// not exist there. Threads: any.
#pragma once
#include <pthread.h>

#include <atomic>
#include <cstdint>

namespace thalweg {

class Origin {
 public:
  // Returns false if this process was forked from the one that created the object.
  bool here() const { return forks_ == Forks().load(std::memory_order_relaxed); }

 private:
  // The number of forks between the first process that used this counter and the present one.
  static std::atomic<uint32_t>& Forks() {
    static std::atomic<uint32_t> forks{0};
    static const int asked = pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });
    (void)asked;  // fails if memory is short; a forked child is then not detected
    return forks;
  }
  const uint32_t forks_ = Forks().load(std::memory_order_relaxed);
};

}  // namespace thalweg
