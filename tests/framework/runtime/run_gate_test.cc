#include "framework/runtime/run_gate.h"

#include <atomic>
#include <chrono>
#include <thread>

#include "gtest/gtest.h"

namespace thalweg {
namespace {

using Clock = std::chrono::steady_clock;

// Returns milliseconds.
int64_t TimeToPass(RunGate& gate, int32_t priority) {
  const auto before = Clock::now();
  gate.Pass(priority);
  return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - before).count();
}

// Uses the minimum of several times: on a busy machine, any of them may be long.
bool PassesAtOnce(RunGate& gate, int32_t priority) {
  for (int i = 0; i < 10; ++i) {
    if (TimeToPass(gate, priority) < 50) return true;
  }
  return false;
}

TEST(RunGateTest, EqualsAndHigherOnesPassAtOnce) {
  RunGate gate(1);
  for (int i = 0; i < 10; ++i) gate.Accept(0);
  gate.Accept(kHighestPriority);
  EXPECT_TRUE(PassesAtOnce(gate, kHighestPriority));
  gate.End(kHighestPriority);
  EXPECT_TRUE(PassesAtOnce(gate, 0));
}

TEST(RunGateTest, ALowerOneWaitsWhileTheThreadsAreTaken) {
  RunGate gate(2);
  gate.Accept(1);
  gate.Accept(kLowestPriority);
  EXPECT_TRUE(PassesAtOnce(gate, kLowestPriority));  // one thread is free
  gate.Accept(1);
  std::atomic<int64_t> passed_after{-1};
  std::thread low([&] { passed_after = TimeToPass(gate, kLowestPriority); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_TRUE(passed_after < 0 || passed_after >= 90) << passed_after;  // it may have been delayed for the maximum time
  gate.End(1);
  low.join();
  EXPECT_GE(passed_after, 0);
}

TEST(RunGateTest, ALowerOneIsPutOffButNotShutOut) {
  RunGate gate(1);
  gate.Accept(3);
  gate.Accept(2);
  EXPECT_GE(TimeToPass(gate, 2), 90);
}

}  // namespace
}  // namespace thalweg
