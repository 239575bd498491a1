// StepStats: the record of one run, node by node (the object behind tw_step_stats). step_trace.h
// collects it.
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
#include "framework/runtime/trace/node_texts.h"
#include "thalweg/step_span.h"
#include "thalweg/step_stats.h"

namespace thalweg {

class StepTrace;

// The note about a node that runs once: one cache line.
struct StepNote {
  int64_t start = -1, left = 0, end = 0, ready = -1;
  uint64_t bytes = 0, allocated = 0;
  std::thread::id thread;
  bool failed = false;
};

// Threads: any number of readers, while no run fills the object.
class StepStats {
 public:
  const tw_step_total& total() const { return total_; }
  const std::vector<tw_step_node>& nodes() const { return nodes_; }
  const std::vector<tw_step_op>& ops() const { return ops_; }
  const std::vector<tw_step_wait>& waits() const { return waits_; }
  // Returns the thread of record number i.
  std::thread::id thread(size_t i) const { return threads_[i]; }
  // A function call and its time.
  struct Call {
    const char* function;
    uint64_t call;
    int64_t start, end;
    std::thread::id thread;
  };
  const std::vector<Call>& calls() const { return calls_; }
  // A part of a kernel's call, as the kernel reports it. row: "" for the row of the thread.
  struct KernelSpan {
    const char *node, *device, *name, *row;
    int64_t start, end;
    std::thread::id thread;
  };
  const std::vector<KernelSpan>& spans() const { return spans_; }
  // The value of a kernel's counter from a time on.
  struct KernelCount {
    const char *node, *device, *name;
    int64_t at, value;
    std::thread::id thread;
  };
  const std::vector<KernelCount>& counts() const { return counts_; }
  // The spans and counts as records of the C API.
  const std::vector<tw_step_span>& span_records() const { return span_records_; }
  const std::vector<tw_step_count>& count_records() const { return count_records_; }
  // Returns the number of a thread in the records; UINT32_MAX: it has none.
  uint32_t NumberOf(std::thread::id thread) const;
  // Number of the trace of the run, by which plugins name it (tw_run_api.trace); 0: none.
  uint64_t trace() const { return trace_; }
  // Limits the number of nodes and of waits that are kept.
  void set_limit(uint32_t records) { limit_ = records; }
  uint32_t limit() const { return limit_; }

  // A run's part in another process: times count from the begin of this run, ids and threads from
  // 0; texts are copied.
  struct Part {
    tw_step_total total{};
    std::vector<tw_step_node> nodes;
    std::vector<tw_step_wait> waits;
    std::vector<Call> calls;             // without threads
    std::vector<uint32_t> call_threads;  // threads of the calls
    std::vector<KernelSpan> spans;       // without threads, as counts
    std::vector<KernelCount> counts;
    std::vector<uint32_t> span_threads, count_threads;
    uint32_t threads = 0;
  };
  // Fills the object from the parts of a run that had no step in this process. REQUIRES: the run
  // owns the object and is about to end.
  void Assemble(std::span<const Part> parts);

 private:
  friend class StepTrace;
  void Clear();
  void SumUp();
  // Sorts the spans and counts, and makes their records. REQUIRES: their threads have numbers.
  void RecordReports();
  const char* Keep(std::string_view text);

  std::atomic<bool> taken_{false};  // a run fills the object
  uint32_t limit_ = 1 << 18;
  tw_step_total total_{};
  std::vector<tw_step_node> nodes_;
  std::vector<tw_step_op> ops_;
  std::vector<tw_step_wait> waits_;
  std::vector<Call> calls_;
  std::vector<KernelSpan> spans_;
  std::vector<KernelCount> counts_;
  std::vector<tw_step_span> span_records_;
  std::vector<tw_step_count> count_records_;
  uint64_t trace_ = 0;
  std::vector<std::thread::id> threads_;
  std::unordered_set<std::string> texts_;
  std::vector<std::shared_ptr<const NodeTexts>> node_texts_;
  std::vector<uint32_t> after_;

  // Memory that a traced run needs, kept for the next one.
  struct Place {
    int64_t start, end;
    size_t at;
    bool noted;  // true: `at` is a node of the graph; false: `at` is a record of a call or a loop
  };
  std::vector<StepNote> notes_;
  std::vector<Place> places_;
  std::vector<uint32_t> ids_;
};

// Formats all steps as one trace, see tw_step_stats_trace.
std::string TraceJson(std::span<const StepStats* const> steps);

}  // namespace thalweg
