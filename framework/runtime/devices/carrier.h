// Carrier: moves values between memories for kernels that take and give values in any memory
// (`anywhere`): the kernels of lists and those that call functions. A value in a list stays on the
// device that made it while there is room (Swapping); beyond that it goes to host memory. Copies
// run on the device's copy queues, beside its kernels. Threads: any.
#pragma once
#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "framework/base/status.h"
#include "framework/runtime/devices/device_queues.h"
#include "framework/tensor/tensor.h"

namespace thalweg {

class StepState;

// A session's limit for device memory that lists hold, and counts of the bytes moved.
struct Swapping {
  uint64_t above = 0;  // bytes; 0: three quarters of the device's limit
  std::atomic<uint64_t> out_bytes{0}, in_bytes{0};
  // Returns true if so much of the device is in use that values put into lists should leave it.
  bool Wanted(const Device& device) const;
};

class Carrier {
 public:
  explicit Carrier(StepState* step) : step_(step) {}
  Carrier(const Carrier&) = delete;
  // Returns the tensor in memory of the device; NULL means host memory, readable on return. *mark
  // says when the copy arrives; it is empty if the value is there.
  StatusOr<Tensor> To(Device* there, const Tensor& t, QueueMark* mark);
  // Returns the tensor that a list keeps: the tensor itself, or a copy in host memory that may
  // still be in flight.
  StatusOr<Tensor> PutAway(const Tensor& t);
  // Prefetches a tensor that a list kept: returns it in memory of the device, possibly still in
  // flight. If there is no room, returns the tensor itself.
  StatusOr<Tensor> Bring(Device* there, const Tensor& t);
  // Waits until devices have finished all work for the step, so that others may use its values.
  Status Settle();
  // Forgets all copies. REQUIRES: the step's queues are empty.
  void Reset();

 private:
  StatusOr<Tensor> ToHost(Device* here, const Tensor& t, QueueMark* mark);
  StatusOr<Tensor> FromHost(Device* there, const Tensor& t, QueueMark* mark);
  Status AwaitHost(const Tensor& t);

  // A copy that may be in flight.
  struct Copy {
    const Buffer* to;
    QueueMark mark;
  };
  void Note(std::vector<Copy>* all, const Tensor& to, const QueueMark& mark);
  // Returns when the tensor arrives; an empty mark if it is not among the copies.
  QueueMark ArrivalOf(const Tensor& t, const std::vector<Copy>& by);

  StepState* const step_;
  std::mutex mu_;
  std::atomic<bool> leaving_{false};  // copies to host memory may be in flight
  std::atomic<bool> noted_{false};    // left_ or coming_ is not empty; in most steps both are empty
  std::vector<Copy> left_, coming_;   // copies from devices to the host, and to devices
};

}  // namespace thalweg
