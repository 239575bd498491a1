// StepTrace: the notes from which step statistics are made, taken as the step runs.
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
#include "framework/runtime/device_spans.h"
#include "framework/runtime/step_stats.h"

struct tw_timeline;

namespace thalweg {

class Device;
class StepState;

// One run's notes, or those of a function that it calls. Threads: any, about different nodes.
class StepTrace final : private SpanListener {
 public:
  // The run begins, on this thread. FAILED_PRECONDITION if another run is filling the object.
  static StatusOr<std::unique_ptr<StepTrace>> Begin(StepStats* stats);
  // A call of a function inside of it begins, on this thread; `outer` must live until it is over.
  static std::unique_ptr<StepTrace> BeginCall(StepTrace* outer, std::string_view function);
  ~StepTrace();
  StepTrace(const StepTrace&) = delete;

  void Planned(bool made, uint64_t step);  // the plan is there; which run of the session it is
  // The step begins; `state` lives until it is over.
  void Start(StepState* state);
  // Node i could run from now on.
  void Ready(size_t i) { notes_[i].ready = Now(); }
  // A thread of the step takes node i, for the first time or again. after: what the same thread has just left, with nothing but the way
  // here since: one look at the clock is the end of the one and the start of the other. -1: nothing.
  void Take(size_t i, int32_t after = -1);
  // Types and dims of its inputs and outputs, where only running tells; see AddDims.
  std::vector<int64_t>& Dims(size_t i) { return asides_[i].dims; }
  void Output(size_t i, uint64_t bytes, bool allocated);
  void Scratch(size_t i, uint64_t bytes) { notes_[i].allocated += bytes; }
  // The thread goes on. ends_later: Ended is called for it.
  void Leave(size_t i, bool ends_later, bool ok);
  // An asynchronous call is over; before the thread went on, or after.
  void Ended(size_t i, bool ok);
  // Of nodes that may run several times: one run, which is over. Threads: one at a time.
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
  // What node i enqueued on the stream is over when its timeline reaches the value. REQUIRES: told in the order in which nodes enqueued.
  void EndsWith(size_t i, const void* stream, tw_timeline* line, uint64_t value);
  // Held while a node enqueues its work, until EndsWith is called.
  std::mutex& enqueue_mutex() { return enqueue_mu_; }
  // Since then node i of a loop waited at a resource, and now it runs again.
  void PutOff(size_t i, int64_t since) { AddWait(TW_STEP_WAIT_RESOURCE, since, Now(), texts_->nodes[i].name, ""); }
  // The caller had nothing to do since then, or waited for a device.
  void Waited(int64_t since, std::string_view device = {});
  // This thread waited since then, for what (TW_STEP_WAIT_...).
  void Waited(int64_t since, uint32_t why, std::string_view name, std::string_view what);
  // The step is over, nothing of it is under way. The state must still be there.
  void Finish();
  // The run is over. One that nobody says this of failed before its step.
  void Over(const Status& s);

  int64_t Now() const;  // since the run began, ns

 private:
  using Note = StepNote;
  // Of plans some of whose shapes only running tells, or whose devices have queues.
  struct Aside {
    StepTrace* trace = nullptr;  // while a timeline is waited for
    Note* note = nullptr;        // likewise
    std::vector<int64_t> dims;
    const void* stream = nullptr;  // where its work is, up to `mark`
    uint64_t mark = 0;
    const char* queue = nullptr;  // that it ran on, from and to when; NULL: not told
    int64_t device_start = 0, device_end = 0;
  };
  struct Span {
    std::string queue;
    int64_t begin, end;
    const void* stream;
    uint64_t after;
  };
  StepTrace(StepStats* stats, StepTrace* root);
  void Ran(const tw_span& span) override;
  void Listen();
  void PlaceSpans();
  void AddWait(uint32_t why, int64_t since, int64_t until, std::string_view name, std::string_view what);
  // aside: NULL: there is none.
  void Write(size_t i, const Note& note, const Aside* aside, tw_step_node* to) const;
  // Of the nodes that ran, numbered from `next` on.
  void NumberNotes(size_t next);
  uint32_t AddAfter(size_t i);
  void AddNotes();
  void AddRuns();
  void Add(const tw_step_node& record, std::thread::id thread, size_t after);
  void AddInOrder();
  uint32_t NumberOf(std::thread::id thread);
  void Close();

  StepStats* const stats_;
  StepTrace* const root_;  // itself, of the run
  const int64_t began_;    // of the run
  StepState* state_ = nullptr;
  std::shared_ptr<const NodeTexts> texts_;
  std::vector<Note> notes_;    // per node of the plan
  std::vector<Aside> asides_;  // likewise, or none
  std::vector<uint32_t> ids_;  // likewise, at the end: of records
  std::vector<Run> runs_;
  std::atomic<int32_t> lines_{0};  // ends that timelines are to tell
  std::mutex enqueue_mu_;
  std::vector<Device*> heard_;  // devices that are listened to
  std::mutex spans_mu_;
  std::vector<Span> spans_;
  int64_t waited_ = 0;
  bool over_ = false;
  // Of a call.
  const char* function_ = "";
  uint64_t call_ = 0;
  int64_t call_began_ = 0;
  // Of the run; mu_ guards these and what the statistics hold.
  struct NodeRecord {
    tw_step_node c;
    std::thread::id thread;
    size_t after;  // where its list begins
  };
  struct WaitRecord {
    tw_step_wait c;
    std::thread::id thread;
  };
  std::mutex mu_;
  size_t room_ = 0;  // for records of calls and loops
  std::vector<NodeRecord> nodes_;
  std::vector<WaitRecord> waits_;
  std::unordered_map<std::string, uint64_t> calls_;
};

// A time that a thread waits, if somebody watches: until it ends.
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
