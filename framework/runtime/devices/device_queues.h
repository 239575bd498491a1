// DeviceQueues: one step's use of a device that works asynchronously: a queue for kernels, one for
// copies in, one for copies out, and the memory and locks that enqueued work still needs after the
// host is done with them. Threads: any.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "framework/base/status.h"
#include "framework/runtime/devices/device.h"
#include "framework/tensor/tensor.h"

namespace thalweg {

struct KernelFrame;
class Resource;

// The point at which some work of a queue has finished.
struct QueueMark {
  tw_timeline* line = nullptr;  // the queue's
  uint64_t value = 0;
};

class DeviceQueues {
 public:
  enum Which : uint8_t { kCompute, kIn, kOut };
  static StatusOr<std::unique_ptr<DeviceQueues>> Create(Device* device);
  ~DeviceQueues();  // drains the queues

  Device* device() const { return device_; }
  Stream* compute() const { return streams_[kCompute].get(); }
  // Returns the queue for enqueueing work; call it for each use. Copy queues are created on first
  // use.
  StatusOr<Stream*> Queue(Which which);
  // Returns the mark after everything that the queue holds now. REQUIRES: Queue(which) was called.
  StatusOr<QueueMark> Mark(Which which);
  // Makes work enqueued from now on start after the mark. Blocks if the device cannot wait by
  // itself.
  Status Order(Which which, const QueueMark& mark);

  // Keeps the memory from reuse until all queues have passed what they hold now.
  void Keep(Tensor t);
  // Keeps a variable's tensor that only kernels of this queue use, so that one of them may write
  // it.
  void KeepShare(Tensor t);
  int32_t CountShares(const Tensor& of) const;
  void LetGoShares(const Tensor& of);
  // Waits until some kept memory is free. Returns false if nothing is kept.
  bool Reclaim();
  // Releases the locks of the call's resources when the kernel queue has passed what it holds now.
  void CloseWhenOver(KernelFrame* f) { CloseWhenOver(&f, 1); }
  void CloseWhenOver(KernelFrame* const* frames, size_t n);

  // Blocks until everything that the queues hold now has finished; returns the first failure.
  // Others may go on enqueueing.
  Status Settle();
  // Blocks until everything has finished and releases all kept memory; returns the first failure.
  // REQUIRES: nobody enqueues any more.
  Status Drain();
  // Returns the first failure of any queue and its time in *at; OK if there was none.
  Status failure(uint64_t* at) const;

 private:
  static constexpr int kQueues = 3;
  struct Kept {
    std::vector<Tensor> tensors;
    std::vector<QueueMark> until;
    bool over() const;
  };
  struct Closing;
  explicit DeviceQueues(Device* device) : device_(device) {}
  // Blocks until the queues that received work have passed what they hold now.
  Status Await();
  // REQUIRES: mu_ is held.
  void MarkFresh();
  std::vector<Tensor> TakeOver();
  std::unique_ptr<Closing> MakeClosing(KernelFrame* const* frames, size_t n) noexcept;
  void Closed(Closing* c);

  Device* const device_;
  std::unique_ptr<Stream> streams_[kQueues];
  bool given_[kQueues] = {true, false, false};  // work since the last Drain; kernels never set [0]; guarded by mu_
  std::mutex order_mu_[kQueues];                // orders the waits of each queue for other queues
  std::vector<QueueMark> seen_[kQueues];        // marks of other queues that it has waited for
  mutable std::mutex mu_;                       // guards kept memory and the creation of queues
  std::vector<Tensor> fresh_;                   // kept since the last mark
  std::vector<Tensor> shares_;                  // tensors of variables; kept until Drain
  uint64_t fresh_bytes_ = 0;
  std::deque<Kept> kept_;
  // Taken on the device's thread, so it must not be held while the device is called.
  std::mutex closing_mu_;
  std::condition_variable closed_;
  size_t closing_ = 0;               // locks still to be released
  std::vector<Resource*> released_;  // references to resources whose locks were released
};

}  // namespace thalweg
