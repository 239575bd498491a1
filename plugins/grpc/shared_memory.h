// SharedMemory: memory that two processes of one user on one machine share. It has no name in the file system, so whoever dies leaves
// nothing behind; nobody but the user can open it, and nobody can make it shorter. A child that is forked has none of it.
// Threads: any; what is in it is its users' business.
#pragma once
#include <cstdint>
#include <memory>

#include "origin.h"

namespace thalweg::grpc_transport {

// How the other side finds it, as it goes over a line. The secret shows that what was found is what was meant.
struct MemoryName {
  int32_t process = 0, descriptor = 0;
  uint64_t secret[2] = {};
};

class SharedMemory {
 public:
  // Of zeros. NULL: there is no such memory here.
  static std::unique_ptr<SharedMemory> Make(uint64_t bytes);
  // NULL: it cannot be reached, as from another user, container or machine, or is not what it should be.
  static std::unique_ptr<SharedMemory> Open(const MemoryName& name, uint64_t bytes, bool writable);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  const MemoryName& name() const { return name_; }
  // Page by page; what its users have begins with the second one.
  char* data() const { return memory_ + kHeader; }
  // Nobody else is to open it any more.
  void Hide();

 private:
  static constexpr uint64_t kHeader = 4096;
  SharedMemory(int descriptor, char* memory, uint64_t all) : descriptor_(descriptor), memory_(memory), all_(all) {}
  int descriptor_;
  char* const memory_;
  const uint64_t all_;  // bytes
  const Origin origin_;
  MemoryName name_;
};

}  // namespace thalweg::grpc_transport
