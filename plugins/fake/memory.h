// A separate address space. The host must not touch its addresses, because nothing is mapped there.
// Only the device's commands see the cells behind the addresses, which are elsewhere in memory.
// Fresh memory holds NaN, so a read before the first write shows. Threads: any.
#ifndef THALWEG_PLUGINS_FAKE_MEMORY_H_
#define THALWEG_PLUGINS_FAKE_MEMORY_H_

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "thalweg/cpp/plugin.hpp"

namespace thalweg::fake {

class Memory {
 public:
  // name: the name of the device, for messages.
  Memory(std::string name, uint64_t bytes);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  // Throws RESOURCE_EXHAUSTED.
  void* Allocate(uint64_t bytes);
  void Release(void* address);
  // Returns the cells of [address + offset, + bytes). Throws INTERNAL for a range that is not
  // inside one allocation: a host address, another device's address, or released memory.
  char* Cells(const void* address, uint64_t offset, uint64_t bytes) const;

  struct Use {
    uint64_t used, peak, largest_free;
  };
  Use use() const;

 private:
  static constexpr uint64_t kAlign = 256;
  const std::string name_;
  const uint64_t size_;
  char* addresses_ = nullptr;
  char* cells_ = nullptr;
  mutable std::mutex mutex_;
  std::map<uint64_t, uint64_t> taken_, free_;  // start -> size, in bytes from the first address
  uint64_t used_ = 0, peak_ = 0;
};

}  // namespace thalweg::fake

#endif  // THALWEG_PLUGINS_FAKE_MEMORY_H_
