// Pace: learns from the times of steps whether they are faster in order or side by side. Threads:
// one.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace thalweg {

class Pace {
 public:
  enum Way : uint8_t { kInOrder, kSideBySide };

  // Returns how the next step should run. The slower way is retried now and then, because machines
  // and feeds change.
  Way Next() {
    ++steps_;
    if (steps_ == 1 || seen_[kInOrder] < kTries) return kInOrder;
    if (ns_[kInOrder] < kWorthSharing) return kInOrder;
    if (seen_[kSideBySide] < kTries) return kSideBySide;
    const Way best = Best(), other = Way(1 - best);
    if (best != best_) {
      best_ = best;
      gap_ = kShortestGap;
      again_ = steps_ + gap_;
    }
    if (steps_ < again_) return best;
    gap_ = std::min(2 * gap_, LongestGap(other, best));
    again_ = steps_ + gap_;
    return other;
  }

  void Took(Way way, int64_t ns) {
    if (steps_ == 1) return;  // a first step allocates its memory
    int64_t& mean = ns_[way];
    if (seen_[way] < kTries) {
      mean = seen_[way] == 0 ? ns : std::min(mean, ns);
      ++seen_[way];
    } else if (ns < mean && way != best_) {
      mean = ns;
    } else {
      mean += (std::min(ns, 2 * mean) - mean) / 4;  // one step on a busy machine says little
    }
  }

 private:
  static constexpr int64_t kWorthSharing = 30'000;                             // ns: three times the cost of waking a thread
  static constexpr uint64_t kTries = 3, kShortestGap = 8, kLongestGap = 2048;  // steps

  // Returns the faster way. Running side by side must gain at least 1/16 to justify a second
  // thread.
  Way Best() const { return ns_[kSideBySide] < ns_[kInOrder] - ns_[kInOrder] / 16 ? kSideBySide : kInOrder; }

  // Returns the longest gap in steps between retries of the slower way, so that retries cost less
  // than half a percent of the total time, or next to nothing.
  uint64_t LongestGap(Way slower, Way faster) const {
    const int64_t lost = std::max<int64_t>(ns_[slower] - ns_[faster], 0);
    return std::clamp(uint64_t(256 * double(lost) / double(std::max<int64_t>(ns_[faster], 1))), kShortestGap, kLongestGap);
  }

  int64_t ns_[2] = {0, 0};
  uint64_t seen_[2] = {0, 0}, steps_ = 0;
  Way best_ = kInOrder;
  uint64_t gap_ = kShortestGap, again_ = 0;  // again_: the step of the next retry
};

// One Pace for each of the last eight kinds of steps: times of steps with feeds of one shape say
// nothing about other shapes.
class Paces {
 public:
  // kind: an address used as an id only. If an address is reused for another kind, that kind starts
  // with what was learnt for the first.
  void Turn(const void* kind) {
    for (now_ = 0; now_ < kKinds; ++now_) {
      if (kinds_[now_] == kind) return;
    }
    now_ = oldest_++ % kKinds;
    kinds_[now_] = kind;
    paces_[now_] = {};
  }
  Pace& now() { return paces_[now_]; }

 private:
  static constexpr size_t kKinds = 8;
  std::array<const void*, kKinds> kinds_ = {};
  std::array<Pace, kKinds> paces_;
  size_t now_ = 0, oldest_ = 0;
};

}  // namespace thalweg
