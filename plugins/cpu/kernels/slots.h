// Shares a call's work between threads that each need memory of their own. At most `slots` workers
// take numbered tasks one after the other, each with its slice of one scratch area. The load
// decides which worker takes a task, so a task must own the memory that it writes.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_SLOTS_H_
#define THALWEG_PLUGINS_CPU_KERNELS_SLOTS_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <new>
#include <thread>

#include "kernels/common/temp.h"
#include "thalweg/cpp/plugin.hpp"

namespace thalweg::cpu {

// Returns the number of workers that a kernel prepares for. Scratch is sized before the host's pool
// is known, so this asks the machine. A larger pool gives a kernel no more threads than this.
inline int WorkerSlots() { return int(std::clamp(std::thread::hardware_concurrency(), 1u, 64u)); }

inline uint64_t RoundUp64(uint64_t bytes) { return (bytes + 63) / 64 * 64; }

// The frame's scratch. If the plan did not know the shapes, it requested no scratch, and this
// allocates memory of its own. 64-byte aligned.
class Workspace {
 public:
  Workspace(const tw_frame* f, uint64_t bytes) : data_(static_cast<char*>(f->scratch)) {
    if (data_ || !bytes) return;
    own_ = TempArray<char>(f, bytes);
    data_ = own_.get();
  }
  char* data() const { return data_; }

 private:
  char* data_;
  TempArray<char> own_;
};

// Calls run(task, slot) for each task of [0, tasks). No two concurrent calls have the same slot.
// REQUIRES: run does not throw.
template <class F>
void ForEachTask(const tw_frame* f, int64_t tasks, int slots, F&& run) {
  const int64_t workers = std::min<int64_t>({tasks, slots, int64_t(f->host->run->threads(f))});
  if (workers <= 1) {
    for (int64_t t = 0; t < tasks; ++t) run(t, 0);
    return;
  }
  std::atomic<int64_t> next{0};
  tw::Frame{f}.parallel(uint64_t(workers), 1, [&](uint64_t begin, uint64_t end) {
    for (uint64_t slot = begin; slot < end; ++slot)
      for (int64_t t; (t = next.fetch_add(1, std::memory_order_relaxed)) < tasks;) run(t, int(slot));
  });
}

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_SLOTS_H_
