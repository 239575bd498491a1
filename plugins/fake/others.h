// The work of other libraries on memory that this device reads. Each work is one word, which is 0
// until the work is complete and outlives the device. Threads: any.
#ifndef THALWEG_PLUGINS_FAKE_OTHERS_H_
#define THALWEG_PLUGINS_FAKE_OTHERS_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace thalweg::fake {

class Others {
 public:
  void Add(const uint32_t* work) {
    std::lock_guard lock(mutex_);
    works_.push_back(work);
    count_.store(works_.size(), std::memory_order_release);
  }
  // Returns the works added since the last call with the same *seen.
  std::vector<const uint32_t*> Since(size_t* seen) const {
    if (count_.load(std::memory_order_acquire) == *seen) return {};
    std::lock_guard lock(mutex_);
    const std::vector<const uint32_t*> fresh(works_.begin() + std::ptrdiff_t(*seen), works_.end());
    *seen = works_.size();
    return fresh;
  }
  static void Await(const uint32_t* work) {
    while (!__atomic_load_n(work, __ATOMIC_ACQUIRE)) std::this_thread::sleep_for(std::chrono::microseconds(50));
  }

 private:
  mutable std::mutex mutex_;
  std::vector<const uint32_t*> works_;
  std::atomic<size_t> count_{0};
};

}  // namespace thalweg::fake

#endif  // THALWEG_PLUGINS_FAKE_OTHERS_H_
