// StepStats: what one run did, node by node (what tw_step_stats holds). step_trace.h: the notes from which it is made.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_set>
#include <utility>
#include <vector>

#include "framework/base/status.h"
#include "framework/runtime/node_texts.h"
#include "thalweg/step_stats.h"

namespace thalweg {

class StepTrace;

// What is noted of a node that runs once: a cache line.
struct StepNote {
  int64_t start = -1, left = 0, end = 0, ready = -1;
  uint64_t bytes = 0, allocated = 0;
  std::thread::id thread;
  bool failed = false;
};

// Threads: readers any, while no run has it.
class StepStats {
 public:
  const tw_step_total& total() const { return total_; }
  const std::vector<tw_step_node>& nodes() const { return nodes_; }
  const std::vector<tw_step_op>& ops() const { return ops_; }
  const std::vector<tw_step_wait>& waits() const { return waits_; }
  // The thread that records call i.
  std::thread::id thread(size_t i) const { return threads_[i]; }
  // Calls of functions: where they are in time.
  struct Call {
    const char* function;
    uint64_t call;
    int64_t start, end;
    std::thread::id thread;
  };
  const std::vector<Call>& calls() const { return calls_; }
  // How many nodes and how many waits are kept.
  void set_limit(uint32_t records) { limit_ = records; }
  uint32_t limit() const { return limit_; }

  // What a run did in another process: times from the beginning of this run, ids and threads from 0, texts that are copied.
  struct Part {
    tw_step_total total{};
    std::vector<tw_step_node> nodes;
    std::vector<tw_step_wait> waits;
    std::vector<Call> calls;             // without threads
    std::vector<uint32_t> call_threads;  // theirs
    uint32_t threads = 0;
  };
  // The run, which had no step here, is what its parts did. REQUIRES: it has the object, and is about to be over.
  void Assemble(std::span<const Part> parts);

 private:
  friend class StepTrace;
  void Clear();
  void SumUp();
  const char* Keep(std::string_view text);

  std::atomic<bool> taken_{false};  // by a run
  uint32_t limit_ = 1 << 18;
  tw_step_total total_{};
  std::vector<tw_step_node> nodes_;
  std::vector<tw_step_op> ops_;
  std::vector<tw_step_wait> waits_;
  std::vector<Call> calls_;
  std::vector<std::thread::id> threads_;
  std::unordered_set<std::string> texts_;
  std::vector<std::shared_ptr<const NodeTexts>> node_texts_;
  std::vector<uint32_t> after_;

  // Room that a run needs while it is watched, kept for the next.
  struct Place {
    int64_t start, end;
    size_t at;
    bool noted;  // `at` is a node of the graph that was run; else a record of a call or a loop
  };
  std::vector<StepNote> notes_;
  std::vector<Place> places_;
  std::vector<uint32_t> ids_;
};

// All of them as one trace, see tw_step_stats_trace.
std::string TraceJson(std::span<const StepStats* const> steps);

}  // namespace thalweg
