#include "framework/runtime/run_gate.h"

#include <chrono>

namespace thalweg {
namespace {
constexpr auto kLongEnough = std::chrono::milliseconds(100);
}

void RunGate::Accept(int32_t priority) {
  std::lock_guard lock(mu_);
  ++under_way_[size_t(priority - kLowestPriority)];
}

bool RunGate::Clear(int32_t priority) const {
  uint64_t higher = 0;
  for (int32_t p = priority + 1; p <= kHighestPriority; ++p) higher += under_way_[size_t(p - kLowestPriority)];
  return higher < threads_;
}

bool RunGate::Open(int32_t priority) {
  std::lock_guard lock(mu_);
  return Clear(priority);
}

void RunGate::Pass(int32_t priority) {
  std::unique_lock lock(mu_);
  ended_.wait_for(lock, kLongEnough, [&] { return Clear(priority); });
}

void RunGate::End(int32_t priority) {
  std::lock_guard lock(mu_);
  --under_way_[size_t(priority - kLowestPriority)];
  ended_.notify_all();
}

}  // namespace thalweg
