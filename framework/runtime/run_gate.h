// RunGate: the order in which asynchronously started runs begin. A run begins when the runs of higher
// priority in progress are fewer than the threads, or when it has waited 100 ms: it is delayed, never
// starved. Threads: any.
#pragma once
#include <array>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace thalweg {

constexpr int32_t kLowestPriority = -10, kHighestPriority = 10;

class RunGate {
 public:
  explicit RunGate(uint32_t threads) : threads_(threads) {}
  // REQUIRES for all: kLowestPriority <= priority <= kHighestPriority. Accept counts a run as in
  // progress until End.
  void Accept(int32_t priority);
  // Returns true if the run may begin at once.
  bool Open(int32_t priority);
  // Blocks until the run may begin, at most 100 ms.
  void Pass(int32_t priority);
  void End(int32_t priority);

 private:
  bool Clear(int32_t priority) const;  // REQUIRES: mu_ is held

  const uint32_t threads_;
  std::mutex mu_;
  std::condition_variable ended_;
  std::array<uint64_t, kHighestPriority - kLowestPriority + 1> under_way_{};  // runs in progress, by priority
};

}  // namespace thalweg
