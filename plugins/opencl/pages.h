// Host memory for the buffers of a device that shares the host's memory. Drivers do not copy it,
// and large blocks use large pages. Returned blocks are kept for reuse by size, up to a limit,
// because fresh pages cost more than most kernels do on them. Threads: any.
#ifndef THALWEG_PLUGINS_OPENCL_PAGES_H_
#define THALWEG_PLUGINS_OPENCL_PAGES_H_

#include <cstddef>
#include <map>
#include <mutex>

namespace thalweg::opencl {

class Pages {
 public:
  ~Pages();
  // Returns at least `bytes` bytes, aligned for every element type, or NULL if there is no memory.
  void* Take(size_t bytes);
  // bytes: the argument of Take.
  void Give(void* block, size_t bytes);

 private:
  std::mutex mutex_;
  std::multimap<size_t, void*> kept_;  // by size
  size_t kept_bytes_ = 0;
};

}  // namespace thalweg::opencl

#endif  // THALWEG_PLUGINS_OPENCL_PAGES_H_
