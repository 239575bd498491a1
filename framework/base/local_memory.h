// LocalMemory: memory for the small arrays of one function or object. It allocates from inside the
// object first, and from the heap when that is used up. Freed memory is not reused; it is released
// with the LocalMemory. Threads: one.
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
