#include "memory.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iterator>

#include <sys/mman.h>

namespace thalweg::fake {
namespace {

char* Map(uint64_t bytes, int access) {
  void* p = mmap(nullptr, bytes, access, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) throw tw::Error{TW_RESOURCE_EXHAUSTED, "no room for an address space of " + std::to_string(bytes) + " bytes"};
  return static_cast<char*>(p);
}

}  // namespace

Memory::Memory(std::string name, uint64_t bytes) : name_(std::move(name)), size_(std::max(bytes, kAlign) / kAlign * kAlign) {
  addresses_ = Map(size_, PROT_NONE);
  try {
    cells_ = Map(size_, PROT_READ | PROT_WRITE);
    free_[0] = size_;
  } catch (...) {
    munmap(addresses_, size_);
    throw;
  }
}

Memory::~Memory() {
  munmap(cells_, size_);
  munmap(addresses_, size_);
}

void* Memory::Allocate(uint64_t bytes) {
  const uint64_t size = (std::max<uint64_t>(bytes, 1) + kAlign - 1) / kAlign * kAlign;
  std::lock_guard lock(mutex_);
  auto hole = std::find_if(free_.begin(), free_.end(), [&](const auto& h) { return h.second >= size; });
  if (hole == free_.end())
    throw tw::Error{TW_RESOURCE_EXHAUSTED, name_ + " is full: " + std::to_string(used_) + " of " + std::to_string(size_) +
                                               " bytes are in use, and " + std::to_string(bytes) + " more do not fit"};
  const auto [at, room] = *hole;
  free_.erase(hole);
  if (room > size) free_[at + size] = room - size;
  taken_[at] = size;
  used_ += size;
  peak_ = std::max(peak_, used_);
  std::memset(cells_ + at, 0xff, size);
  return addresses_ + at;
}

void Memory::Release(void* address) {
  std::lock_guard lock(mutex_);
  auto it = taken_.find(uint64_t(static_cast<char*>(address) - addresses_));
  if (it == taken_.end()) return;
  auto [at, size] = *it;
  taken_.erase(it);
  used_ -= size;
  auto after = free_.find(at + size);
  if (after != free_.end()) {
    size += after->second;
    free_.erase(after);
  }
  auto before = free_.lower_bound(at);
  if (before != free_.begin() && std::prev(before)->first + std::prev(before)->second == at)
    std::prev(before)->second += size;
  else
    free_[at] = size;
}

char* Memory::Cells(const void* address, uint64_t offset, uint64_t bytes) const {
  const uint64_t at = uint64_t(static_cast<const char*>(address) - addresses_) + offset;
  std::lock_guard lock(mutex_);
  auto block = taken_.upper_bound(at);
  if (block != taken_.begin() && at < size_ && bytes <= size_) {
    --block;
    if (at + bytes <= block->first + block->second) return cells_ + at;
  }
  char text[32];
  std::snprintf(text, sizeof text, "%p + %llu", address, static_cast<unsigned long long>(offset));
  throw tw::Error{TW_INTERNAL, std::to_string(bytes) + " bytes at " + text + " are not memory of " + name_ +
                                   "; a host address, another device's, or memory that was released"};
}

Memory::Use Memory::use() const {
  std::lock_guard lock(mutex_);
  uint64_t largest = 0;
  for (const auto& [at, size] : free_) largest = std::max(largest, size);
  return {used_, peak_, largest};
}

}  // namespace thalweg::fake
