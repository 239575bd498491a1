// MemoryBudget: an account of the memory that a session, a client or a server may hold at once. An account may have a parent: what is
// taken from a session's is taken from its client's and its server's as well, or from none of them. A buffer that was charged counts until
// its last reference is gone, also where somebody else holds that.
// Threads: any.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "framework/base/status.h"

struct tw_tensor;

namespace thalweg {

struct Buffer;

class MemoryBudget {
 public:
  // What a buffer costs beside its bytes: its own record, that of the tensor round it, and what the heap adds to the three.
  static constexpr uint64_t kPerBuffer = 336;
  static constexpr uint64_t kUnlimited = UINT64_MAX;

  // Owned by the caller and by what is charged to it: deleted with the last of them. who: whose it is, as messages say it: "the session",
  // "client 'ann'". parent: pays as well; NULL: nobody does.
  static MemoryBudget* Create(uint64_t limit, std::string who = "the session", MemoryBudget* parent = nullptr) {
    return new MemoryBudget(limit, std::move(who), parent);
  }
  void Retain() { refs_.fetch_add(1, std::memory_order_relaxed); }
  void Release() {
    if (refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

  // RESOURCE_EXHAUSTED naming bytes, use, limit and whose limit it is, if so many more are too many; before they are allocated, so that
  // they never are.
  Status Check(uint64_t bytes);
  // Counts what has been allocated: from a pool, and by nobody else yet; anything else is left alone. Errors: as Check.
  Status Charge(Buffer* buffer);
  Status Charge(tw_tensor* tensor);  // its strings too
  // Bytes of the heap, before they are allocated, and after they were freed. What idle memory (see IdleMemory) the limit leaves no room for
  // goes back to the system. Errors: as Check.
  Status Take(uint64_t bytes);
  void Give(uint64_t bytes);
  // The same of memory that pools keep.
  Status TakeBuffer(uint64_t bytes);
  void GiveBuffer(uint64_t bytes);

  uint64_t used() const { return used_.load(std::memory_order_relaxed); }
  uint64_t limit() const { return limit_; }
  const std::string& who() const { return who_; }
  // What may still be taken: from this account and from its parents.
  uint64_t left() const;
  // Called where memory is short, here or at a parent, to give back what is only kept for later; on any thread, by one at a time. NULL:
  // nobody any more; waits for a call under way.
  void SetReclaim(std::function<void()> reclaim);

 private:
  MemoryBudget(uint64_t limit, std::string who, MemoryBudget* parent);
  ~MemoryBudget();
  // False: its last reference is gone, and it is about to be deleted.
  bool TryRetain();
  bool Fits(uint64_t bytes) const;
  bool TryTake(uint64_t bytes);
  // From all levels, or from none: then the one that has too little.
  MemoryBudget* TryTakeAll(uint64_t bytes);
  void Add(uint64_t bytes);
  Status TooMany(uint64_t bytes) const;
  void Reclaim();

  const uint64_t limit_;
  const std::string who_;
  MemoryBudget* const parent_;
  std::atomic<uint64_t> used_{0};
  std::atomic<int32_t> refs_{1};
  std::mutex reclaim_mu_;
  std::function<void()> reclaim_;
  std::mutex children_mu_;
  std::vector<MemoryBudget*> children_;  // those that can reclaim
};

}  // namespace thalweg
