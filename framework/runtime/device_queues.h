// DeviceQueues: what a step uses of a device that works on its own: a queue for kernels, one for copies in and one for copies out, and the
// memory and locks that their work still needs when the host is done with them.
// Threads: any.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "framework/base/status.h"
#include "framework/runtime/device.h"
#include "framework/tensor/tensor.h"

namespace thalweg {

struct KernelFrame;
class Resource;

// When some work of a queue is over.
struct QueueMark {
  tw_timeline* line = nullptr;  // the queue's
  uint64_t value = 0;
};

class DeviceQueues {
 public:
  enum Which : uint8_t { kCompute, kIn, kOut };
  static StatusOr<std::unique_ptr<DeviceQueues>> Create(Device* device);
  ~DeviceQueues();  // drains

  Device* device() const { return device_; }
  Stream* compute() const { return streams_[kCompute].get(); }
  // To give it work, asked for each time. The queues for copies are made when they are first wanted.
  StatusOr<Stream*> Queue(Which which);
  // All that the queue holds now. REQUIRES: it was asked for.
  StatusOr<QueueMark> Mark(Which which);
  // What the queue is given from now on starts when the mark is reached. May block: where the device has no way to wait.
  Status Order(Which which, const QueueMark& mark);

  // The memory is used again only when all queues are past what they hold now.
  void Keep(Tensor t);
  // The same of a variable's tensor that only kernels of the queue use, so that one of them may write it.
  void KeepShare(Tensor t);
  int32_t CountShares(const Tensor& of) const;
  void LetGoShares(const Tensor& of);
  // Waits until some of what is kept is free; false: nothing is kept.
  bool Reclaim();
  // The locks of the call's resources go when the queue for kernels is past what it holds now.
  void CloseWhenOver(KernelFrame* f) { CloseWhenOver(&f, 1); }
  void CloseWhenOver(KernelFrame* const* frames, size_t n);

  // Blocks until all that the queues hold now is over; the first failure. Others may go on giving them work.
  Status Settle();
  // Blocks until everything is over, and lets go of all that is kept; the first failure. REQUIRES: nobody gives them work any more.
  Status Drain();
  // The first failure of any queue, and when it was; OK: none.
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
  // Blocks until the queues that were given work are past what they hold now.
  Status Await();
  // REQUIRES: mu_.
  void MarkFresh();
  std::vector<Tensor> TakeOver();
  std::unique_ptr<Closing> MakeClosing(KernelFrame* const* frames, size_t n) noexcept;
  void Closed(Closing* c);

  Device* const device_;
  std::unique_ptr<Stream> streams_[kQueues];
  bool given_[kQueues] = {true, false, false};  // work, since all was over; kernels go to theirs unasked. Guarded by mu_
  std::mutex order_mu_[kQueues];                // a queue waits for others in one order
  std::vector<QueueMark> seen_[kQueues];        // how far of other queues it has waited
  mutable std::mutex mu_;                       // memory, and the making of queues
  std::vector<Tensor> fresh_;                   // kept, since the last mark
  std::vector<Tensor> shares_;                  // of variables; until the end
  uint64_t fresh_bytes_ = 0;
  std::deque<Kept> kept_;
  // Taken on the device's thread, so never held while the device is called.
  std::mutex closing_mu_;
  std::condition_variable closed_;
  size_t closing_ = 0;               // locks that are yet to go
  std::vector<Resource*> released_;  // whose locks are gone; references
};

}  // namespace thalweg
