// Device: one device of a plugin, its name, memory and streams. Names are "/job:localhost/replica:0/task:0/device:CPU:0"; specs may
// leave parts out ("CPU:0", "/device:CPU:0", "/cpu:0", "/job:worker").
// Threads: any; calls about one stream are serialised by its lock.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/base/status.h"
#include "framework/registry/registry.h"
#include "framework/runtime/timeline.h"
#include "framework/tensor/tensor.h"

namespace thalweg {

struct DeviceSpec {
  std::string job, kind;                        // empty: any
  int32_t replica = -1, task = -1, index = -1;  // -1: any
  bool Admits(const DeviceSpec& full) const;
  std::string text() const;
};
// INVALID_ARGUMENT quoting what is wrong. Kinds are upper-cased.
StatusOr<DeviceSpec> ParseDeviceSpec(std::string_view text);
// Both constraints at once; INVALID_ARGUMENT if they contradict each other.
StatusOr<DeviceSpec> MergeDeviceSpecs(const DeviceSpec& a, const DeviceSpec& b);

class Device;

// Whose memory holds the tensor; NULL: host memory, or the device is no more.
Device* HoldingDevice(const tw_tensor& t);
// Its elements may be read: false also of what was a device's that is no more.
bool LiesOnHost(const tw_tensor& t);

// A queue of a device. The timeline says how far it got.
class Stream {
 public:
  static StatusOr<std::unique_ptr<Stream>> Create(Device* device);
  ~Stream();                           // drains
  void* c() const { return stream_; }  // NULL after it broke
  // A value that is reached when all that was enqueued so far is over. Takes the mutex. After an error all of it is over, and the stream
  // with it.
  StatusOr<uint64_t> Mark();
  tw_timeline* timeline() const { return line_; }
  // Blocks until everything enqueued is over; the first failure.
  Status Drain();
  // What is enqueued here from now on starts when all that `other` holds now is over. May block: where the device has no way to wait.
  Status WaitFor(Stream* other);
  // The same for a value of a timeline.
  Status WaitFor(tw_timeline* line, uint64_t value);
  std::mutex& mutex() { return mu_; }

 private:
  Stream(Device* device, tw_timeline* line) : device_(device), line_(line) {}
  void Destroy();
  Device* device_;
  tw_timeline* line_;
  void* stream_ = nullptr;
  uint64_t last_ = 0;
  std::mutex mu_;
};

class Device {
 public:
  Device(const DeviceKind* kind, int32_t index, const tw_device_info& info, uint64_t memory_limit);
  ~Device();
  const std::string& name() const { return name_; }
  const std::string& kind() const { return kind_->kind; }
  const std::string& uid() const { return uid_; }
  const std::string& description() const { return description_; }
  const std::string& plugin() const { return kind_->plugin; }
  uint64_t memory() const { return memory_; }
  int32_t index() const { return index_; }
  const DeviceSpec& spec() const { return spec_; }
  bool host_memory() const { return host_memory_; }
  bool on_request() const { return on_request_; }  // only for what names its kind
  bool has_streams() const { return kind_->has_streams; }
  void* self() const { return self_; }
  const DeviceKind& def() const { return *kind_; }
  MemoryPool* pool() const { return pool_; }
  // Host memory that the device copies from and to without a detour; NULL: it has none of its own, and any will do.
  MemoryPool* staging() const { return staging_; }
  // Memory that is kept for later goes back to whoever it came from.
  void GiveMemoryBack() const;
  // "host memory, streams, wait, ...": what it has of the optional sets.
  std::string Capabilities() const;
  // Copies `bytes` between host and this device; one side is an address, the other a handle with an offset (equal for host memory).
  // stream NULL: done on return; else the stream's mutex is taken for the call.
  Status CopyIn(const void* from, void* to, uint64_t to_offset, uint64_t bytes, Stream* stream);
  Status CopyOut(void* from, uint64_t from_offset, void* to, uint64_t bytes, Stream* stream);
  // Whether memory can be copied from here to `other` without the host.
  bool Reaches(const Device& other) const;
  // From memory of this device to memory of `other`. stream: this device's, or NULL: done on return. REQUIRES: Reaches(other).
  Status CopyToPeer(const tw_view& from, const Device& other, const tw_view& to, Stream* stream) const;
  // Device to host and back; blocks. Into new tensors, or the same one where the device's memory is the host's.
  StatusOr<Tensor> ToHost(const Tensor& t);
  StatusOr<Tensor> FromHost(const Tensor& t);
  // The same elements in other memory of this device; blocks.
  StatusOr<Tensor> Clone(const Tensor& t, MemoryBudget* budget);
  // What the device tells of itself: names as in tw_statistics_set. UNIMPLEMENTED where it tells nothing.
  StatusOr<std::vector<std::pair<std::string, int64_t>>> Statistics() const;

 private:
  Status Copy(tw_copy* c, Stream* stream);
  // Calls `copy` with the stream's handle, under its lock; tells what went wrong.
  template <class Call>
  Status OnStream(tw_copy* c, Stream* stream, Call&& copy) const;
  Status CheckCopyable(const Tensor& t) const;

  const DeviceKind* kind_;
  int32_t index_;
  std::string name_, uid_, description_;
  void* self_;
  uint64_t memory_;
  bool host_memory_, on_request_;
  DeviceSpec spec_;
  MemoryPool* pool_;
  MemoryPool* staging_ = nullptr;
};

// The bytes of `from` to where `to` begins, between places of devices, as plugins are asked for it.
tw_copy CopyOf(const tw_view& from, const tw_view& to);

}  // namespace thalweg
