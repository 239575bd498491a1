// Carrier: moves values between memories for kernels that take and give them wherever they lie (`anywhere`): those of lists, and those that
// call functions. What a list keeps stays on the device that made it while there is room (Swapping), and goes to host memory beyond that.
// Copies run on the device's queues for copies, beside its kernels.
// Threads: any.
#pragma once
#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "framework/base/status.h"
#include "framework/runtime/device_queues.h"
#include "framework/tensor/tensor.h"

namespace thalweg {

class StepState;

// What a session says of memory of devices that lists hold, and what came of it.
struct Swapping {
  uint64_t above = 0;  // bytes; 0: three quarters of what the device may hold
  std::atomic<uint64_t> out_bytes{0}, in_bytes{0};
  // So much of the device is in use that what a list keeps should leave it.
  bool Wanted(const Device& device) const;
};

class Carrier {
 public:
  explicit Carrier(StepState* step) : step_(step) {}
  Carrier(const Carrier&) = delete;
  // The tensor in memory of the device; NULL: in the host's, to be read at once. *mark: when it is there.
  StatusOr<Tensor> To(Device* there, const Tensor& t, QueueMark* mark);
  // What a list is to keep: the tensor, or one in host memory that will be the same.
  StatusOr<Tensor> PutAway(const Tensor& t);
  // What a list kept, in memory of the device, maybe on its way, before it is asked for. Where there is no room, the tensor itself.
  StatusOr<Tensor> Bring(Device* there, const Tensor& t);
  // Nothing that devices do for the step is under way any more, so that others may use its values.
  Status Settle();
  // The step's queues are empty.
  void Reset();

 private:
  StatusOr<Tensor> ToHost(Device* here, const Tensor& t, QueueMark* mark);
  StatusOr<Tensor> FromHost(Device* there, const Tensor& t, QueueMark* mark);
  Status AwaitHost(const Tensor& t);

  // A copy that may not be over.
  struct Copy {
    const Buffer* to;
    QueueMark mark;
  };
  void Note(std::vector<Copy>* all, const Tensor& to, const QueueMark& mark);
  // When the tensor is there.
  QueueMark ArrivalOf(const Tensor& t, const std::vector<Copy>& by);

  StepState* const step_;
  std::mutex mu_;
  std::atomic<bool> leaving_{false};  // some of what left devices may not be in host memory yet
  std::atomic<bool> noted_{false};    // there are some of the next two; of most steps there are none
  std::vector<Copy> left_, coming_;   // copies out of devices, and into them
};

}  // namespace thalweg
