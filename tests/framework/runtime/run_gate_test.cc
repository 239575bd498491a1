#include "framework/runtime/run_gate.h"

#include <atomic>
#include <chrono>
#include <thread>

#include "gtest/gtest.h"

namespace thalweg {
namespace {

using Clock = std::chrono::steady_clock;

std::chrono::milliseconds TimeToPass(RunGate& gate, int32_t priority) {
  const auto before = Clock::now();
  gate.Pass(priority);
  return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - before);
}

TEST(RunGateTest, EqualsAndHigherOnesPassAtOnce) {
  RunGate gate(1);
  for (int i = 0; i < 10; ++i) gate.Accept(0);
  gate.Accept(kHighestPriority);
  EXPECT_LT(TimeToPass(gate, kHighestPriority).count(), 50);
  gate.End(kHighestPriority);
  EXPECT_LT(TimeToPass(gate, 0).count(), 50);
}

TEST(RunGateTest, ALowerOneWaitsWhileTheThreadsAreTaken) {
  RunGate gate(2);
  gate.Accept(1);
  gate.Accept(kLowestPriority);
  EXPECT_LT(TimeToPass(gate, kLowestPriority).count(), 50);  // one thread is free
  gate.Accept(1);
  std::atomic<bool> passed{false};
  std::thread low([&] {
    gate.Pass(kLowestPriority);
    passed = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(passed);
  gate.End(1);
  low.join();
  EXPECT_TRUE(passed);
}

TEST(RunGateTest, ALowerOneIsPutOffButNotShutOut) {
  RunGate gate(1);
  gate.Accept(3);
  gate.Accept(2);
  EXPECT_GE(TimeToPass(gate, 2).count(), 90);
}

}  // namespace
}  // namespace thalweg
