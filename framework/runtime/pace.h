// Pace: whether steps are faster in order or side by side, learnt from how long they take. Threads: one.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace thalweg {

class Pace {
 public:
  enum Way : uint8_t { kInOrder, kSideBySide };

  // How the next step is to run. The slower way is tried again now and then, since machines and feeds change.
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
    if (steps_ == 1) return;  // a first step touches memory that is not there yet
    int64_t& mean = ns_[way];
    if (seen_[way] < kTries) {
      mean = seen_[way] == 0 ? ns : std::min(mean, ns);
      ++seen_[way];
    } else if (ns < mean && way != best_) {
      mean = ns;
    } else {
      mean += (std::min(ns, 2 * mean) - mean) / 4;  // one step in which the machine was busy says little
    }
  }

 private:
  static constexpr int64_t kWorthSharing = 30'000;                             // ns: three times what it takes to wake a thread
  static constexpr uint64_t kTries = 3, kShortestGap = 8, kLongestGap = 2048;  // steps

  // A second thread has to be of some use.
  Way Best() const { return ns_[kSideBySide] < ns_[kInOrder] - ns_[kInOrder] / 16 ? kSideBySide : kInOrder; }

  // Steps until the slower way is tried again: what it costs more then is less than half a percent of all, or it costs next to nothing.
  uint64_t LongestGap(Way slower, Way faster) const {
    const int64_t lost = std::max<int64_t>(ns_[slower] - ns_[faster], 0);
    return std::clamp(uint64_t(256 * double(lost) / double(std::max<int64_t>(ns_[faster], 1))), kShortestGap, kLongestGap);
  }

  int64_t ns_[2] = {0, 0};
  uint64_t seen_[2] = {0, 0}, steps_ = 0;
  Way best_ = kInOrder;
  uint64_t gap_ = kShortestGap, again_ = 0;  // the step that tries the other way again
};

// The pace of each of the last few kinds of steps: what is learnt of steps with feeds of one shape says nothing of others.
class Paces {
 public:
  // kind: an address that means nothing; one that is used again for another kind begins with what was learnt of the first.
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
