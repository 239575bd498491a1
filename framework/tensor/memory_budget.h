// MemoryBudget: a limit on the memory that one user of the pools, such as a session, may hold at once. A buffer that was charged counts
// until its last reference is gone, also where somebody else holds that.
// Threads: any.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>

#include "framework/base/status.h"

struct tw_tensor;

namespace thalweg {

struct Buffer;

class MemoryBudget {
 public:
  // Owned by the caller and by what is charged to it: deleted with the last of them.
  static MemoryBudget* Create(uint64_t limit) { return new MemoryBudget(limit); }
  void Retain() { refs_.fetch_add(1, std::memory_order_relaxed); }
  void Release() {
    if (refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

  // RESOURCE_EXHAUSTED naming bytes, use and limit, if so many more are too many; before they are allocated, so that they never are.
  Status Check(uint64_t bytes);
  // Counts what has been allocated: from a pool, and by nobody else yet; anything else is left alone. Errors: as Check.
  Status Charge(Buffer* buffer);
  Status Charge(tw_tensor* tensor);  // its strings too
  // Bytes that are no buffer's, such as those of strings. Errors: as Check.
  Status Take(uint64_t bytes);
  void Give(uint64_t bytes) { used_.fetch_sub(bytes, std::memory_order_relaxed); }

  uint64_t used() const { return used_.load(std::memory_order_relaxed); }
  uint64_t limit() const { return limit_; }
  // Called where memory is short, to give back what is only kept for later; on any thread, by one at a time. NULL: nobody any more; waits
  // for a call under way.
  void SetReclaim(std::function<void()> reclaim);

 private:
  explicit MemoryBudget(uint64_t limit) : limit_(limit) {}
  bool Fits(uint64_t bytes) const;
  bool TryTake(uint64_t bytes);
  Status TooMany(uint64_t bytes) const;
  void Reclaim();

  const uint64_t limit_;
  std::atomic<uint64_t> used_{0};
  std::atomic<int32_t> refs_{1};
  std::mutex reclaim_mu_;
  std::function<void()> reclaim_;
};

}  // namespace thalweg
