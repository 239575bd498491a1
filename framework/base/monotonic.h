// Nanoseconds on the monotonic clock. Threads: any.
#pragma once
#include <chrono>
#include <cstdint>

namespace thalweg {

inline int64_t MonotonicNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace thalweg
