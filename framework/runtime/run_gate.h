// RunGate: the order in which runs begin that nobody waits for. One of a lower priority begins when fewer runs of higher ones are under way
// than there are threads, or when it has waited long enough: it is put off, never shut out. Threads: any.
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
  // REQUIRES of all: priority is between the lowest and the highest. A run was accepted: it is under way until End.
  void Accept(int32_t priority);
  // Whether it may begin at once.
  bool Open(int32_t priority);
  // Blocks until it may begin.
  void Pass(int32_t priority);
  void End(int32_t priority);

 private:
  bool Clear(int32_t priority) const;  // REQUIRES: mu_

  const uint32_t threads_;
  std::mutex mu_;
  std::condition_variable ended_;
  std::array<uint64_t, kHighestPriority - kLowestPriority + 1> under_way_{};  // by priority
};

}  // namespace thalweg
