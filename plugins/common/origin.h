// Origin: the process in which an object was made. A forked child has a copy of the object, but
// neither the threads nor the shared memory that it needs. Threads: any.
#ifndef THALWEG_PLUGINS_COMMON_ORIGIN_H_
#define THALWEG_PLUGINS_COMMON_ORIGIN_H_

#include <pthread.h>

#include <atomic>
#include <cstdint>

namespace thalweg::common {

class Origin {
 public:
  // Returns false if this process is a forked child of the original one.
  bool here() const { return forks_ == Forks().load(std::memory_order_relaxed); }

 private:
  // The number of forks on the way to this process.
  static std::atomic<uint32_t>& Forks() {
    static std::atomic<uint32_t> forks{0};
    static const int asked = pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });
    (void)asked;  // fails without memory: then a child is not recognized
    return forks;
  }
  const uint32_t forks_ = Forks().load(std::memory_order_relaxed);
};

}  // namespace thalweg::common

#endif  // THALWEG_PLUGINS_COMMON_ORIGIN_H_
