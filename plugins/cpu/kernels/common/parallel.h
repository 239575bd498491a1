// Splits loops over the host's thread pool. Pieces may be cut anywhere, so the result of a piece
// must not depend on where the piece begins: the results then have the same bits on any number of
// threads. If a piece throws (out of memory), the caller gets the exception, and other pieces may
// not run.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_COMMON_PARALLEL_H_
#define THALWEG_PLUGINS_CPU_KERNELS_COMMON_PARALLEL_H_

#include <algorithm>
#include <atomic>
#include <exception>
#include <type_traits>

#include "thalweg/cpp/plugin.hpp"

namespace thalweg::cpu {

// About 10 us of work for a core, ten times the cost of waking a core. A smaller amount of work is
// not worth sharing. A unit is the work of a vectorised loop on one float: load, add, store.
inline constexpr int64_t kGrain = 32768;

// Returns the product of the sizes as a cost. The result is capped at one grain, so it never
// overflows.
template <class... Sizes>
constexpr int64_t Cost(Sizes... sizes) {
  int64_t cost = 1;
  ((cost = std::min(kGrain, cost * std::min(kGrain, int64_t(sizes)))), ...);
  return cost;
}

// ParallelFor without the type of the loop's body, so that each body is compiled once.
[[gnu::noinline]] inline void ParallelLoop(const tw_frame* f, int64_t n, int64_t cost, void (*run)(void* body, int64_t begin, int64_t end),
                                           void* body) {
  if (n <= 0) return;
  int64_t grain = cost >= kGrain ? 1 : kGrain / (cost > 0 ? cost : 1);
  if (n <= grain) return run(body, 0, n);
  std::atomic<bool> failed{false};
  std::exception_ptr thrown;
  tw::Frame{f}.parallel(uint64_t(n), uint64_t(grain), [&](uint64_t begin, uint64_t end) {
    if (failed.load(std::memory_order_relaxed)) return;
    try {
      run(body, int64_t(begin), int64_t(end));
    } catch (...) {
      if (!failed.exchange(true)) thrown = std::current_exception();
    }
  });
  if (thrown) std::rethrow_exception(thrown);
}

// Calls part(begin, end) for pieces of [0, n). One index costs `cost` units.
template <class F>
void ParallelFor(const tw_frame* f, int64_t n, int64_t cost, F&& part) {
  using Body = std::remove_reference_t<F>;
  ParallelLoop(
      f, n, cost, [](void* body, int64_t begin, int64_t end) { (*static_cast<Body*>(body))(begin, end); },
      const_cast<void*>(static_cast<const void*>(&part)));
}

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_COMMON_PARALLEL_H_
