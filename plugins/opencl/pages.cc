#include "pages.h"

#include <algorithm>
#include <cstdlib>

#include <sys/mman.h>

namespace thalweg::opencl {
namespace {

constexpr size_t kAlignment = 128;       // alignment of the widest vectors
constexpr size_t kPage = 4096;           // alignment that drivers require to use memory without a copy
constexpr size_t kLarge = 2u << 20;      // size of a large page
constexpr size_t kKeptFrom = 64u << 10;  // the C library itself keeps smaller blocks
constexpr size_t kMostKept = 64u << 20;  // bytes in all kept blocks

// Returns the size of the block for `bytes` bytes.
size_t SizeOf(size_t bytes) {
  const size_t unit = bytes < kPage ? kAlignment : bytes < kKeptFrom ? kPage : bytes < kLarge ? kKeptFrom : kLarge;
  return (std::max<size_t>(bytes, 1) + unit - 1) / unit * unit;
}

}  // namespace

Pages::~Pages() {
  for (auto& [size, block] : kept_) std::free(block);
}

void* Pages::Take(size_t bytes) {
  const size_t size = SizeOf(bytes);
  if (size < bytes) return nullptr;
  if (size >= kKeptFrom) {
    std::lock_guard lock(mutex_);
    if (const auto found = kept_.find(size); found != kept_.end()) {
      void* block = found->second;
      kept_.erase(found);
      kept_bytes_ -= size;
      return block;
    }
  }
  void* block = std::aligned_alloc(size < kPage ? kAlignment : size < kLarge ? kPage : kLarge, size);
  if (block && size >= kLarge) madvise(block, size, MADV_HUGEPAGE);  // this may fail; then pages are small
  return block;
}

void Pages::Give(void* block, size_t bytes) {
  const size_t size = SizeOf(bytes);
  if (size >= kKeptFrom) {
    std::lock_guard lock(mutex_);
    if (kept_bytes_ + size <= kMostKept) {
      kept_.emplace(size, block);
      kept_bytes_ += size;
      return;
    }
  }
  std::free(block);
}

}  // namespace thalweg::opencl
