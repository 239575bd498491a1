// StepSet: steps of a session, kept as ranges. Steps come nearly in order, so a million of them
// beside one that waits take one range. EndedSteps: failed steps, with the reasons of the last
// ones. Threads: one at a time.
#pragma once
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <string>

#include "distributed/meter.h"
#include "framework/base/status.h"

namespace thalweg::distributed {

class StepSet {
 public:
  static constexpr uint64_t kRange = 96;  // approximate bytes of a range
  // paid: pays for the ranges; NULL for no charge. Every call must pass the same meter.
  bool Contains(uint64_t step) const {
    auto it = ranges_.upper_bound(step);
    return it != ranges_.begin() && std::prev(it)->second >= step;
  }
  // Returns false, leaving the set unchanged, if there is no memory for another range.
  bool Insert(uint64_t step, Meter* paid = nullptr) {
    auto next = ranges_.upper_bound(step);
    auto before = next == ranges_.begin() ? ranges_.end() : std::prev(next);
    if (before != ranges_.end() && before->second >= step) return true;
    const bool joins_next = next != ranges_.end() && next->first - 1 == step;
    if (before != ranges_.end() && before->second + 1 == step) {
      before->second = step;
      if (!joins_next) return true;
      before->second = next->second;
      ranges_.erase(next);
      if (paid) paid->Give(kRange);
      return true;
    }
    if (joins_next) {
      auto node = ranges_.extract(next);
      node.key() = step;
      ranges_.insert(std::move(node));
      return true;
    }
    if (paid && !paid->Take(kRange)) return false;
    ranges_.emplace_hint(next, step, step);
    return true;
  }
  // Drops ranges that end before `oldest`.
  void Forget(uint64_t oldest, Meter* paid = nullptr) {
    while (!ranges_.empty() && ranges_.begin()->second < oldest) {
      ranges_.erase(ranges_.begin());
      if (paid) paid->Give(kRange);
    }
  }
  size_t ranges() const { return ranges_.size(); }

 private:
  std::map<uint64_t, uint64_t> ranges_;  // from the first step to the last one
};

class EndedSteps {
 public:
  static constexpr size_t kReasons = 64;  // reasons that are kept; for other steps the reason is unknown
  bool Contains(uint64_t step) const { return steps_.Contains(step); }
  // REQUIRES: Contains.
  Status Why(uint64_t step) const {
    auto it = reasons_.find(step);
    return it != reasons_.end() ? it->second : Error(absl::StatusCode::kAborted, "step ", step, " has failed");
  }
  // Returns false if there is no memory to record the step. The first reason stays.
  bool Add(uint64_t step, const Status& why, Meter* paid) {
    if (steps_.Contains(step)) return true;
    if (!steps_.Insert(step, paid)) return false;
    if (reasons_.size() >= kReasons) DropReason(reasons_.begin(), paid);
    if (paid && !paid->Take(OfReason(why))) return true;
    reasons_.emplace(step, why);
    return true;
  }
  void Forget(uint64_t oldest, Meter* paid) {
    steps_.Forget(oldest, paid);
    while (!reasons_.empty() && reasons_.begin()->first < oldest) DropReason(reasons_.begin(), paid);
  }
  size_t ranges() const { return steps_.ranges(); }

 private:
  static uint64_t OfReason(const Status& why) { return 256 + why.message().size(); }
  void DropReason(std::map<uint64_t, Status>::iterator it, Meter* paid) {
    if (paid) paid->Give(OfReason(it->second));
    reasons_.erase(it);
  }
  StepSet steps_;
  std::map<uint64_t, Status> reasons_;
};

}  // namespace thalweg::distributed
