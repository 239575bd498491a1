// LocalMemory: what the small arrays of one function or object stand in: inside it, and on the heap only where that is not enough. What
// is given back is not used again before all of it goes. Threads: one.
#pragma once
#include <cstddef>
#include <memory_resource>

namespace thalweg {

template <size_t kBytes>
class LocalMemory {
 public:
  std::pmr::memory_resource* get() { return &memory_; }

 private:
  alignas(std::max_align_t) std::byte inside_[kBytes];
  std::pmr::monotonic_buffer_resource memory_{inside_, kBytes};
};

}  // namespace thalweg
