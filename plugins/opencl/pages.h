// Host memory that the buffers of a device stand on which shares the host's memory: no driver copies it, and large blocks have large pages.
// Blocks that were given back are kept for the next ones of their size, up to a limit, for fresh pages cost more than what most kernels do
// with them. Threads: any.
#ifndef THALWEG_PLUGINS_OPENCL_PAGES_H_
#define THALWEG_PLUGINS_OPENCL_PAGES_H_

#include <cstddef>
#include <map>
#include <mutex>

namespace thalweg::opencl {

class Pages {
 public:
  ~Pages();
  // At least so many bytes, aligned for every element type; NULL: there are none.
  void* Take(size_t bytes);
  // bytes: as asked for.
  void Give(void* block, size_t bytes);

 private:
  std::mutex mutex_;
  std::multimap<size_t, void*> kept_;  // by their size
  size_t kept_bytes_ = 0;
};

}  // namespace thalweg::opencl

#endif  // THALWEG_PLUGINS_OPENCL_PAGES_H_
