// Pending work of other libraries on a device. Work that the plugin enqueues later waits for it, so
// that it may read memory of these libraries. Threads: any.
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

  // Adds all work that the stream `theirs` holds now. REQUIRES: the device's context is current.
  void Add(CUstream theirs);
  // Makes `queue` wait for the work added since the last call with the same *seen. REQUIRES: as
  // above.
  void OrderBefore(CUstream queue, uint64_t* seen) {
    if (count_.load(std::memory_order_acquire) != *seen) Wait(queue, seen);
  }
  void Clear();  // called before the context is released

 private:
  struct Work {
    uint64_t number;
    CUevent event;
  };
  void Wait(CUstream queue, uint64_t* seen);
  void Prune();  // REQUIRES: mutex_

  Device& device_;
  std::atomic<uint64_t> count_{0};  // works ever added
  std::mutex mutex_;
  std::vector<Work> works_;  // those that were pending at the last Prune
};

}  // namespace thalweg::cuda

#endif  // THALWEG_PLUGINS_CUDA_OTHERS_H_
