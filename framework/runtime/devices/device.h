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
#include "framework/graph/device_spec.h"
#include "framework/registry/device_kind.h"
#include "framework/runtime/devices/timeline.h"
#include "framework/tensor/tensor.h"

namespace thalweg {

class Device;

// Returns the device whose memory holds the tensor; NULL if it is in host memory or the device no
// longer exists.
Device* HoldingDevice(const tw_tensor& t);
// Returns true if the host may read the elements; false too if the memory belonged to a device that
// no longer exists.
bool LiesOnHost(const tw_tensor& t);

// A queue of a device. Its timeline reports progress.
class Stream {
 public:
  static StatusOr<std::unique_ptr<Stream>> Create(Device* device);
  ~Stream();                           // drains the stream
  void* c() const { return stream_; }  // NULL after the stream broke
  // Returns the timeline value that is reached when everything enqueued so far has finished. Takes
  // the mutex. An error destroys the stream; all of its work has then ended.
  StatusOr<uint64_t> Mark();
  tw_timeline* timeline() const { return line_; }
  // Blocks until everything enqueued has finished; returns the first failure.
  Status Drain();
  // Makes work enqueued here from now on start after everything that `other` holds now. Blocks if
  // the device cannot wait by itself.
  Status WaitFor(Stream* other);
  // Waits for a value of a timeline instead.
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
  bool on_request() const { return on_request_; }  // only for nodes that name its kind
  bool has_streams() const { return kind_->has_streams; }
  void* self() const { return self_; }
  const DeviceKind& def() const { return *kind_; }
  MemoryPool* pool() const { return pool_; }
  // Returns the pool of host memory that the device copies from and to directly; NULL if it needs
  // none, so that any host memory will do.
  MemoryPool* staging() const { return staging_; }
  // Returns the bytes in use, their peak and the limit, as tw_devices_memory_use reports them.
  MemoryPool::Stats MemoryUse() const;
  // Returns cached memory to the device and the system.
  void GiveMemoryBack() const;
  // Lists the optional features: "host memory, streams, wait, ...".
  std::string Capabilities() const;
  // Copy `bytes` between the host and this device; one side is an address, the other a handle with
  // an offset (for host memory both are addresses). If stream is NULL, the copy is done on return;
  // else the stream's mutex is taken for the call.
  Status CopyIn(const void* from, void* to, uint64_t to_offset, uint64_t bytes, Stream* stream);
  Status CopyOut(void* from, uint64_t from_offset, void* to, uint64_t bytes, Stream* stream);
  // Returns true if memory can be copied from this device to `other` without the host.
  bool Reaches(const Device& other) const;
  // Copies from this device to `other`. stream: of this device; NULL: the copy is done on return.
  // REQUIRES: Reaches(other).
  Status CopyToPeer(const tw_view& from, const Device& other, const tw_view& to, Stream* stream) const;
  // Copy to the host and back; block. Return a new tensor, or the same one if the device's memory
  // is host memory.
  StatusOr<Tensor> ToHost(const Tensor& t);
  StatusOr<Tensor> FromHost(const Tensor& t);
  // Copies the elements to new memory of this device; blocks.
  StatusOr<Tensor> Clone(const Tensor& t, MemoryBudget* budget);
  // Returns the device's statistics, named as in tw_statistics_set. UNIMPLEMENTED if the device has
  // none.
  StatusOr<std::vector<std::pair<std::string, int64_t>>> Statistics() const;

 private:
  Status Copy(tw_copy* c, Stream* stream);
  // Calls `copy` with the stream's handle under its lock; prefixes errors with the device's name.
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

// Fills a copy record for plugins: all bytes of `from`, to the begin of `to`, both in device
// memory.
tw_copy CopyOf(const tw_view& from, const tw_view& to);

}  // namespace thalweg
