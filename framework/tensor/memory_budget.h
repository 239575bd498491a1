// MemoryBudget: an account of the memory that a session, a client or a server may hold at once. An
// account may have a parent: a charge to a session's account is also made to its client's and its
// server's, or to none of them. A charged buffer counts until its last reference is gone, whoever
// holds that reference.
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
  // Overhead of a buffer in bytes: its own record, that of its tensor, and the heap's overhead for
  // all three blocks.
  static constexpr uint64_t kPerBuffer = 336;
  static constexpr uint64_t kUnlimited = UINT64_MAX;

  // The caller and every charge own a reference; the last one deletes the account. who: the owner's
  // name in messages: "the session", "client 'ann'". parent: is charged too; NULL: none.
  static MemoryBudget* Create(uint64_t limit, std::string who = "the session", MemoryBudget* parent = nullptr) {
    return new MemoryBudget(limit, std::move(who), parent);
  }
  void Retain() { refs_.fetch_add(1, std::memory_order_relaxed); }
  void Release() {
    if (refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

  // Checks before an allocation whether `bytes` more fit, so that excess memory is never allocated.
  // RESOURCE_EXHAUSTED names the bytes, the use, the limit and the owner of the limit.
  Status Check(uint64_t bytes);
  // Charges an allocated buffer if it came from a pool and is not charged yet; leaves any other
  // buffer alone. Errors: as Check.
  Status Charge(Buffer* buffer);
  Status Charge(tw_tensor* tensor);  // also charges the tensor's strings
  // Take charges heap memory before it is allocated; Give credits it after it was freed. Take also
  // returns idle memory (see IdleMemory) to the system if the limit leaves no room for it. Errors:
  // as Check.
  Status Take(uint64_t bytes);
  void Give(uint64_t bytes);
  // Charge and credit memory that pools cache, without touching idle memory.
  Status TakeBuffer(uint64_t bytes);
  void GiveBuffer(uint64_t bytes);

  uint64_t used() const { return used_.load(std::memory_order_relaxed); }
  uint64_t limit() const { return limit_; }
  const std::string& who() const { return who_; }
  // Returns the bytes that this account and all its parents still allow.
  uint64_t left() const;
  // Sets the function that frees cached memory when this account or a parent is short. It may run
  // on any thread, one call at a time. NULL removes the function and waits for a call in progress.
  void SetReclaim(std::function<void()> reclaim);

 private:
  MemoryBudget(uint64_t limit, std::string who, MemoryBudget* parent);
  ~MemoryBudget();
  // Returns false if the last reference is gone and the account is about to be deleted.
  bool TryRetain();
  bool Fits(uint64_t bytes) const;
  bool TryTake(uint64_t bytes);
  // Charges all levels and returns NULL, or charges none and returns the level that has too little.
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
  std::vector<MemoryBudget*> children_;  // accounts that can reclaim
};

}  // namespace thalweg
