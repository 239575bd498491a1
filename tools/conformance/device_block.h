// DeviceBlock: memory of a device, written and read with the plugin's own functions.
// Threads: one block by one thread at a time; several threads may use blocks of one device.
#pragma once
#include <cstdint>
#include <vector>

#include "framework/runtime/devices/device.h"

namespace thalweg::conformance {

using Bytes = std::vector<unsigned char>;
// Returns n bytes that differ from one seed to another.
Bytes Pattern(uint64_t n, uint32_t seed);

class DeviceBlock {
 public:
  DeviceBlock() = default;
  static StatusOr<DeviceBlock> Make(const Device& device, uint64_t bytes, uint64_t align = 64);
  DeviceBlock(DeviceBlock&& o) noexcept { *this = std::move(o); }
  DeviceBlock& operator=(DeviceBlock&& o) noexcept;
  ~DeviceBlock();
  // stream: enqueues the copy there; NULL: the copy is done on return.
  Status Write(uint64_t offset, const void* from, uint64_t n, void* stream = nullptr) const;
  Status Read(uint64_t offset, void* to, uint64_t n, void* stream = nullptr) const;
  Status CopyTo(const DeviceBlock& to, uint64_t from_offset, uint64_t to_offset, uint64_t n, void* stream = nullptr) const;
  Status Put(const Bytes& bytes) const { return Write(0, bytes.data(), bytes.size()); }
  StatusOr<Bytes> Get() const;
  void* memory() const { return memory_; }
  uint64_t bytes() const { return bytes_; }
  const Device& device() const { return *device_; }
  explicit operator bool() const { return device_ != nullptr; }

 private:
  const Device* device_ = nullptr;
  void* memory_ = nullptr;
  uint64_t bytes_ = 0;
};

// Returns a text such as "byte 5 of 64 is 3, not 7"; empty if both are equal.
std::string Difference(const Bytes& got, const Bytes& want);

}  // namespace thalweg::conformance
