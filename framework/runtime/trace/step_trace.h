// StepTrace: takes notes while a step runs; step statistics are made from them.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include "framework/base/status.h"
#include "framework/runtime/devices/device_spans.h"
#include "framework/runtime/trace/step_stats.h"

struct tw_timeline;

namespace thalweg {

class Device;
class StepState;
struct NodeRun;

// The notes of one run, or of a function that it calls. Threads: any, about different nodes.
class StepTrace final : private SpanListener {
 public:
  // Begins a run on this thread. FAILED_PRECONDITION if another run is filling the object.
  static StatusOr<std::unique_ptr<StepTrace>> Begin(StepStats* stats);
  // Begins a function call inside a run, on this thread. `outer` must live until the call ends.
  static std::unique_ptr<StepTrace> BeginCall(StepTrace* outer, std::string_view function);
  ~StepTrace();
  StepTrace(const StepTrace&) = delete;

  void Planned(bool made, uint64_t step);  // the plan is ready; step: number of the run in its session
  // Begins the step. `state` must live until the step ends.
  void Start(StepState* state);
  // Notes that node i can run from now on.
  void Ready(size_t i) { notes_[i].ready = Now(); }
  // Notes that a thread of the step takes node i, for the first time or again. after: the node that
  // the same thread has just left with nothing else in between, so that one clock reading serves as
  // the end of one and the start of the other; -1 if none.
  void Take(size_t i, int32_t after = -1);
  // Returns the list for types and dims of inputs and outputs known only at run time; see AddDims.
  std::vector<int64_t>& Dims(size_t i) { return asides_[i].dims; }
  void Output(size_t i, uint64_t bytes, bool allocated);
  void Scratch(size_t i, uint64_t bytes) { notes_[i].allocated += bytes; }
  // Notes that the thread goes on. ends_later: Ended will be called for the node.
  void Leave(size_t i, bool ends_later, bool ok);
  // Notes the end of an asynchronous call, before or after the thread went on.
  void Ended(size_t i, bool ok);
  // One completed run of a node that may run several times. Threads: one at a time.
  struct Run {
    size_t node = 0;
    int64_t start = 0, left = 0, end = 0;
    uint64_t bytes = 0, allocated = 0;
    std::thread::id thread;
    bool failed = false;
    int32_t frame = 0;
    uint64_t loop = 0;
    int64_t iteration = 0;
    std::vector<int64_t> dims;
  };
  void Ran(Run run);
  // Says that the work that node i enqueued on the stream ends when its timeline reaches the value.
  // REQUIRES: called in the order in which nodes enqueued.
  void EndsWith(size_t i, const void* stream, tw_timeline* line, uint64_t value);
  // Held while a node enqueues its work, until EndsWith returns.
  std::mutex& enqueue_mutex() { return enqueue_mu_; }
  // Notes that node i of a loop waited at a resource since `since` and runs again now.
  void PutOff(size_t i, int64_t since) { AddWait(TW_STEP_WAIT_RESOURCE, since, Now(), texts_->nodes[i].name, ""); }
  // Notes that the caller was idle, or waited for a device, since `since`.
  void Waited(int64_t since, std::string_view device = {});
  // Notes that this thread waited since `since`, and the reason (TW_STEP_WAIT_...).
  void Waited(int64_t since, uint32_t why, std::string_view name, std::string_view what);
  // Adds what a kernel reports of its call (tw_run_api.span and count), on the thread that reports
  // it. REQUIRES, of Span: a name, and an end that is not before the begin.
  void Span(const NodeRun& node, const tw_span& span);
  void Count(const NodeRun& node, std::string_view name, int64_t value);
  // Number of the run's trace, more than 0, unique in the process.
  uint64_t id() const { return id_; }
  // Ends the step: nothing of it is in progress. The state must still exist.
  void Finish();
  // Ends the run. If this is not called, the run has failed before its step.
  void Over(const Status& s);

  int64_t Now() const;  // ns since the run began

 private:
  using Note = StepNote;
  // Notes of a node beyond Note, for plans with shapes known only at run time or with device
  // queues.
  struct Aside {
    StepTrace* trace = nullptr;  // set while the timeline is awaited
    Note* note = nullptr;        // set while the timeline is awaited
    std::vector<int64_t> dims;
    const void* stream = nullptr;  // stream of its work, which ends at `mark`
    uint64_t mark = 0;
    const char* queue = nullptr;  // the device's queue that it ran on, with its times; NULL: not reported
    int64_t device_start = 0, device_end = 0;
  };
  struct DeviceSpan {
    std::string queue;
    int64_t begin, end;
    const void* stream;
    uint64_t after;
  };
  StepTrace(StepStats* stats, StepTrace* root);
  void Ran(const tw_span& span) override;
  void Listen();
  void PlaceSpans();
  // Appends what `make` returns to a list of the statistics, up to the limit. REQUIRES: the run's mu_
  // is held.
  template <class T, class F>
  void AddUpToLimit(std::vector<T>* to, F&& make);
  void AddWait(uint32_t why, int64_t since, int64_t until, std::string_view name, std::string_view what);
  // aside: NULL if there is none.
  void Write(size_t i, const Note& note, const Aside* aside, tw_step_node* to) const;
  // Numbers the nodes that ran, from `next` on.
  void NumberNotes(size_t next);
  uint32_t AddAfter(size_t i);
  void AddNotes();
  void AddRuns();
  void Add(const tw_step_node& record, std::thread::id thread, size_t after);
  void AddInOrder();
  uint32_t NumberOf(std::thread::id thread);
  void Close();

  StepStats* const stats_;
  StepTrace* const root_;  // the run's trace; itself for the run
  const int64_t began_;    // begin of the run
  const uint64_t id_;      // of the run's trace
  StepState* state_ = nullptr;
  std::shared_ptr<const NodeTexts> texts_;
  std::vector<Note> notes_;    // per node of the plan
  std::vector<Aside> asides_;  // per node, or empty
  std::vector<uint32_t> ids_;  // per node: number of its record; filled at the end
  std::vector<Run> runs_;
  std::atomic<int32_t> lines_{0};  // timeline callbacks still to come
  std::mutex enqueue_mu_;
  std::vector<Device*> heard_;  // devices that report their timings
  std::mutex spans_mu_;
  std::vector<DeviceSpan> spans_;
  int64_t waited_ = 0;
  bool over_ = false;
  // For a function call.
  const char* function_ = "";
  uint64_t call_ = 0;
  int64_t call_began_ = 0;
  // For the run; mu_ guards these and the contents of the statistics.
  struct NodeRecord {
    tw_step_node c;
    std::thread::id thread;
    size_t after;  // index of the record's list
  };
  struct WaitRecord {
    tw_step_wait c;
    std::thread::id thread;
  };
  std::mutex mu_;
  size_t room_ = 0;  // records allowed for calls and loops
  std::vector<NodeRecord> nodes_;
  std::vector<WaitRecord> waits_;
  std::unordered_map<std::string, uint64_t> calls_;
};

// Notes the time for which a thread waits, from construction to destruction. Does nothing without a
// trace.
class WaitNote {
 public:
  WaitNote(StepTrace* trace, uint32_t why, std::string_view name, std::string_view what)
      : trace_(trace), why_(why), since_(trace ? trace->Now() : 0), name_(name), what_(what) {}
  ~WaitNote() {
    if (trace_) trace_->Waited(since_, why_, name_, what_);
  }
  WaitNote(const WaitNote&) = delete;

 private:
  StepTrace* const trace_;
  const uint32_t why_;
  const int64_t since_;
  const std::string_view name_, what_;
};

}  // namespace thalweg
