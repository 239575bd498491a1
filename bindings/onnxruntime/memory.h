// Descriptions of memory, and allocators. All memory is the machine's. Threads: a description does not change once made.
#pragma once
#include <cstring>

#include "core.h"

struct OrtMemoryInfo {
  std::string name = "Cpu";
  OrtAllocatorType type = OrtDeviceAllocator;
  int id = 0;
  OrtMemType mem_type = OrtMemTypeDefault;
  OrtMemoryInfoDeviceType device = OrtMemoryInfoDeviceType_CPU;
  OrtDeviceMemoryType device_memory = OrtDeviceMemoryType_DEFAULT;
  uint32_t vendor = 0;
  bool operator==(const OrtMemoryInfo&) const = default;
};

namespace thalweg::ort {

// The description and the allocator of the machine's memory. Both live as long as the process.
const OrtMemoryInfo* CpuMemory();
OrtAllocator* CpuAllocator();

// Allocates with the client's allocator; throws if it has no memory.
void* Allocate(OrtAllocator* allocator, size_t bytes);
// Copies a text into memory of the client's allocator.
char* CopyText(OrtAllocator* allocator, std::string_view text);
// Throws if the memory is not the machine's.
void CheckHost(const OrtMemoryInfo* info);

// Memory of the client's allocator, freed unless it is given away.
class Allocated {
 public:
  Allocated(OrtAllocator* allocator, size_t bytes) : allocator_(allocator), data_(Allocate(allocator, bytes)) {}
  Allocated(const Allocated&) = delete;
  ~Allocated() {
    if (data_) allocator_->Free(allocator_, data_);
  }
  void* data() const { return data_; }
  void* give() { return std::exchange(data_, nullptr); }

 private:
  OrtAllocator* const allocator_;
  void* data_;
};

}  // namespace thalweg::ort
