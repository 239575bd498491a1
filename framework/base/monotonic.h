// Nanoseconds on the monotonic clock. Threads: any.
#pragma once
#include <cstdint>

namespace thalweg {

int64_t MonotonicNs();

}  // namespace thalweg
