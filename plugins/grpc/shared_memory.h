// SharedMemory: memory that two processes of one user on one machine share. It has no name in the
// file system, so a process that dies leaves nothing behind; only the user can open it, and nobody
// can shrink it. A forked child does not inherit it.
// Threads: any; its users synchronize access to the contents.
#pragma once
#include <cstdint>
#include <memory>

#include "../common/origin.h"

namespace thalweg::grpc_transport {

// The location of the memory, as sent over a line. The secret proves that the right memory was
// opened.
struct MemoryName {
  int32_t process = 0, descriptor = 0;
  uint64_t secret[2] = {};
};

class SharedMemory {
 public:
  // Makes zeroed memory. Returns NULL if shared memory is not available.
  static std::unique_ptr<SharedMemory> Make(uint64_t bytes);
  // Returns NULL if the memory cannot be reached (another user, container or machine), or fails the
  // checks.
  static std::unique_ptr<SharedMemory> Open(const MemoryName& name, uint64_t bytes, bool writable);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  const MemoryName& name() const { return name_; }
  // Page aligned; the contents begin at the second page.
  char* data() const { return memory_ + kHeader; }
  // Prevents further processes from opening the memory.
  void Hide();

 private:
  static constexpr uint64_t kHeader = 4096;
  SharedMemory(int descriptor, char* memory, uint64_t all) : descriptor_(descriptor), memory_(memory), all_(all) {}
  int descriptor_;
  char* const memory_;
  const uint64_t all_;  // bytes
  const common::Origin origin_;
  MemoryName name_;
};

}  // namespace thalweg::grpc_transport
