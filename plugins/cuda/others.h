// What other libraries have under way on a device: what is enqueued here later waits for it, so that memory of theirs may be read.
// Threads: any.
#ifndef THALWEG_PLUGINS_CUDA_OTHERS_H_
#define THALWEG_PLUGINS_CUDA_OTHERS_H_

#include <atomic>
#include <mutex>
#include <vector>

#include "driver.h"

namespace thalweg::cuda {

class Device;

class Others {
 public:
  explicit Others(Device& device) : device_(device) {}
  Others(const Others&) = delete;
  Others& operator=(const Others&) = delete;

  // All that their stream holds now. REQUIRES: the device's context.
  void Add(CUstream theirs);
  // Makes `queue` wait for what has come since this was last called with the same *seen. REQUIRES: as above.
  void OrderBefore(CUstream queue, uint64_t* seen) {
    if (count_.load(std::memory_order_acquire) != *seen) Wait(queue, seen);
  }
  void Clear();  // before the context goes

 private:
  struct Work {
    uint64_t number;
    CUevent event;
  };
  void Wait(CUstream queue, uint64_t* seen);
  void Prune();  // REQUIRES: mutex_

  Device& device_;
  std::atomic<uint64_t> count_{0};  // that ever came
  std::mutex mutex_;
  std::vector<Work> works_;  // that were not over when somebody last looked
};

}  // namespace thalweg::cuda

#endif  // THALWEG_PLUGINS_CUDA_OTHERS_H_
