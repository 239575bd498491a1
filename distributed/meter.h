// Meter: memory that an account pays for. Bytes are counted before they are allocated, and given
// back when the meter is destroyed: the memory of a message while it is read, or memory that a
// client makes a process keep. Threads: one at a time.
#pragma once
#include <algorithm>
#include <cstdint>
#include <utility>

#include "framework/base/status.h"
#include "framework/tensor/memory_budget.h"

namespace thalweg::distributed {

class Meter {
 public:
  // budget: NULL for no charge. free: the first bytes cost nothing, so that a full account can
  // still do small things that make room.
  explicit Meter(MemoryBudget* budget = nullptr, uint64_t free = 0) : budget_(budget), room_(budget ? free : UINT64_MAX), free_(free) {
    if (budget_) budget_->Retain();
  }
  Meter(Meter&& other) noexcept { *this = std::move(other); }
  Meter& operator=(Meter&& other) noexcept {
    std::swap(budget_, other.budget_);
    std::swap(room_, other.room_);
    std::swap(free_, other.free_);
    std::swap(used_, other.used_);
    std::swap(status_, other.status_);
    return *this;
  }
  ~Meter() {
    if (!budget_) return;
    if (room_ > free_) budget_->Give(room_ - free_);
    budget_->Release();
  }
  // Returns false if the account has too little memory; status() then names the account.
  bool Take(uint64_t bytes) {
    if (bytes <= room_ - used_) {
      used_ += bytes;
      return true;
    }
    return More(bytes);
  }
  // Takes exactly these bytes.
  bool TakeJust(uint64_t bytes) {
    if (budget_ && bytes > room_ - used_) {
      const uint64_t missing = bytes - (room_ - used_);
      if (Status s = budget_->Take(missing); !s.ok()) {
        status_ = std::move(s);
        return false;
      }
      room_ += missing;
    }
    used_ += bytes;
    return true;
  }
  // Gives back bytes that were taken. A long-lived meter returns its reserve to the account once
  // that exceeds a few pieces.
  void Give(uint64_t bytes) {
    used_ -= std::min(bytes, used_);
    if (budget_ && room_ - used_ > 4 * kPiece + free_) Trim();
  }
  // Returns the unused reserve to the account.
  void Trim() {
    const uint64_t keep = std::max(used_, free_);
    if (!budget_ || room_ <= keep) return;
    budget_->Give(room_ - keep);
    room_ = keep;
  }
  bool pays() const { return budget_ != nullptr; }
  uint64_t used() const { return used_; }
  // The status of the last Take that was refused.
  const Status& status() const { return status_; }
  MemoryBudget* budget() const { return budget_; }

 private:
  static constexpr uint64_t kPiece = 64 << 10;
  // Takes larger pieces than requested, so that the account is asked rarely.
  bool More(uint64_t bytes) {
    const uint64_t missing = bytes - (room_ - used_);
    uint64_t took = std::max(missing, kPiece);
    Status s = budget_->Take(took);
    if (!s.ok() && took > missing) s = budget_->Take(took = missing);
    if (!s.ok()) {
      status_ = std::move(s);
      return false;
    }
    room_ += took;
    used_ += bytes;
    return true;
  }
  MemoryBudget* budget_ = nullptr;
  uint64_t room_ = UINT64_MAX, free_ = 0, used_ = 0;
  Status status_;
};

}  // namespace thalweg::distributed
