// StepStats: what one run did, node by node (what tw_step_stats holds). StepTrace: the notes from which it is made, taken as the step runs.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_set>
#include <utility>
#include <vector>

#include "framework/base/status.h"
#include "thalweg/step_stats.h"

struct tw_timeline;

namespace thalweg {

struct Plan;
struct PlanShapes;
class StepTrace;

// Threads: readers any, while no run has it.
class StepStats {
 public:
  const tw_step_total& total() const { return total_; }
  const std::vector<tw_step_node>& nodes() const { return nodes_; }
  const std::vector<tw_step_op>& ops() const { return ops_; }
  std::string Json() const;

 private:
  friend class StepTrace;
  void Clear();
  void SumUp();
  const char* Keep(std::string_view text);

  std::atomic<bool> taken_{false};  // by a run
  tw_step_total total_{};
  std::vector<tw_step_node> nodes_;
  std::vector<tw_step_op> ops_;
  std::unordered_set<std::string> texts_;
};

// One run's notes. Threads: any, about different nodes.
class StepTrace {
 public:
  // The run begins, on this thread. FAILED_PRECONDITION if another run is filling the object.
  static StatusOr<std::unique_ptr<StepTrace>> Begin(StepStats* stats);
  ~StepTrace();
  StepTrace(const StepTrace&) = delete;

  void Planned(bool made);  // the plan is there
  void Start(const Plan& plan, const PlanShapes& shapes);
  // A thread of the step takes node i.
  void Take(size_t i);
  void Output(size_t i, uint64_t bytes, bool allocated);
  void Scratch(size_t i, uint64_t bytes) { notes_[i].allocated += bytes; }
  // The thread goes on. ends_later: Ended is called for it.
  void Leave(size_t i, bool ends_later, bool ok);
  // An asynchronous call is over; before the thread went on, or after.
  void Ended(size_t i, bool ok);
  // Of nodes that may run several times: one run, which is over; all but so many are forgotten. Threads: one at a time.
  struct Run {
    size_t node = 0;
    int64_t start = 0, left = 0, end = 0;
    uint64_t bytes = 0, allocated = 0;
    std::thread::id thread;
    bool failed = false;
  };
  void Ran(const Run& run);
  // The node ends when the timeline reaches the value.
  void EndsWith(size_t i, tw_timeline* line, uint64_t value);
  // The caller had nothing to do since then.
  void Waited(int64_t since) { waited_ += Now() - since; }
  // The step is over, nothing of it is under way. The plan must still be there.
  void Finish();
  // The run is over. One that nobody says this of failed before its step.
  void Over(const Status& s);

  int64_t Now() const;  // since the run began, ns

 private:
  struct Note {
    int64_t start = -1, left = 0, end = 0;
    uint64_t bytes = 0, allocated = 0;
    std::thread::id thread;
    bool failed = false;
    StepTrace* trace = nullptr;  // while a timeline is waited for
  };
  explicit StepTrace(StepStats* stats);
  tw_step_node Record(size_t i, const Note& note, const std::vector<int32_t>& maker);
  std::string CopiedName(size_t i, const std::vector<int32_t>& maker) const;

  StepStats* const stats_;
  const int64_t began_;
  const Plan* plan_ = nullptr;
  std::vector<Note> notes_;  // per node of the plan
  std::vector<std::pair<size_t, Note>> runs_;
  std::atomic<int32_t> lines_{0};  // ends that timelines are to tell
  int64_t waited_ = 0;
  bool over_ = false;
};

}  // namespace thalweg
