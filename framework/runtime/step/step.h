// StepState: the memory of one run of a plan: slots, frames, counts and memory blocks. It is made
// once and reused, so that a warm step makes no heap call. A plan keeps as many as ran
// concurrently. Threads: one step at a time per state.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "framework/base/status.h"
#include "framework/plan/plan.h"
#include "framework/runtime/blocking_line.h"
#include "framework/runtime/devices/carrier.h"
#include "framework/runtime/devices/device_queues.h"
#include "framework/runtime/devices/memory_story.h"
#include "framework/runtime/pace.h"
#include "framework/runtime/step/frame.h"
#include "framework/runtime/thread_pool.h"
#include "framework/runtime/trace/step_trace.h"

namespace thalweg {

// Bytes of the blocks of a session's step states.
struct BlockCount {
  std::atomic<uint64_t> bytes{0}, peak{0};
  void Add(uint64_t n) {
    const uint64_t now = bytes.fetch_add(n, std::memory_order_relaxed) + n;
    uint64_t most = peak.load(std::memory_order_relaxed);
    while (most < now && !peak.compare_exchange_weak(most, now, std::memory_order_relaxed)) {
    }
  }
};

// State that an engine keeps from step to step.
struct EngineMemory {
  virtual ~EngineMemory() = default;
};

class Recordings;

class StepState final : public StepBase {
 public:
  // blocks: counts the bytes of the state's blocks; may be NULL.
  static StatusOr<std::unique_ptr<StepState>> Create(const Plan* plan, Runtime* runtime, MemoryBudget* budget = nullptr,
                                                     BlockCount* blocks = nullptr);
  ~StepState() override;

  void Complete(uint64_t tag, Status s) override;
  void Again(uint64_t tag) override { listener->Again(size_t(tag)); }
  bool Failed() const override { return listener->failed(); }
  bool IsPlanMemory(const Slot* slot) const override;
  bool IsLastReader(const Slot* slot) const override;
  Carrier* carrier() override { return &carrier_; }
  Status ArrivesWith(const Slot* slot, const QueueMark& mark) override;
  int32_t OwnShares(const KernelFrame& writer, const Tensor& value) override;

  // Binds the state to sizes: the plan's own, or sizes derived from the plan. Needed before the
  // first step and whenever feeds have other shapes. RESOURCE_EXHAUSTED makes the state unusable.
  Status Bind(std::shared_ptr<const PlanShapes> shapes);

  const Plan& plan() const { return *plan_; }
  const PlanShapes* shapes() const { return shapes_.get(); }  // NULL: not bound
  Slot& slot(int32_t v) { return slots_[size_t(v)]; }
  KernelFrame& frame(size_t i) { return frames_[i]; }

  // Binds the caller's feeds, which are borrowed until the step ends. Does nothing if the plan
  // takes its feeds.
  void Feed(const Tensor* feeds);
  // Copies the feeds in Plan::copied_feeds; the step reads the copies. RESOURCE_EXHAUSTED.
  Status CopyFeeds(const Tensor* feeds);
  // Moves the feeds into the step, for a plan that takes its feeds. Called before the step.
  void Take(Tensor* feeds);
  // Runs f on a thread beside those of the step.
  void Blocking(std::function<void()> f) { blocking ? blocking->Run(std::move(f)) : pool->Blocking(std::move(f)); }
  // CopyIn fills a feed that the plan copies; CopyOut makes a tensor from a fetch that the plan
  // copies (PlanValue::kPassed).
  void CopyIn(int32_t v, const void* data);
  StatusOr<Tensor> CopyOut(int32_t v) const;
  // Runs node i. If it ends asynchronously, sets *pending, and Complete receives the end.
  Status RunNode(size_t i, bool* pending);
  // Runs node i with notes for the trace. after: see StepTrace::Take. REQUIRES: there is a trace.
  Status RunTraced(size_t i, bool* pending, int32_t after);
  // Finishes an asynchronous call: closes resources, checks outputs.
  Status EndNode(size_t i);
  // Releases the node's inputs: held values without further readers are dropped.
  template <bool kAtomic>
  void ReleaseInputs(size_t i);
  // Waits for devices, takes the fetches if the step succeeded, and releases everything.
  Status Finish(Status status, Tensor* fetches);

  // Returns the recordings of the plan's runs; NULL if the plan has none.
  Recordings* recordings() const { return recordings_.get(); }

  // Describes a failure of node i with the shapes of its inputs.
  Status Describe(size_t i, const Status& s) noexcept;
  // Notes the time of the first failure: device failures after it are not the cause.
  void NoteFailure() noexcept;

  // Returns the step's queues of a device; NULL if the device has no queues.
  DeviceQueues* QueuesOf(const Device* device) const;
  // Blocks until all work in progress on devices has finished; returns the first failure. kDrain:
  // no more work follows, so memory kept for it is freed.
  enum Under : uint8_t { kSettle, kDrain };
  Status AwaitDevices(Under what) const {
    Status first;
    for (const auto& q : queues_) {
      Status s = !q ? Status() : what == kDrain ? q->Drain() : q->Settle();
      if (first.ok()) first = std::move(s);
    }
    return first;
  }
  // Calls `make` for a tensor or buffer in memory of the device; if memory is short, waits for
  // memory that the queues still hold and tries again.
  template <class Make>
  auto MakeOn(const Device* device, Make&& make) -> decltype(make());
  // Returns true if a device queue has failed; the state must not be reused.
  bool broken() const;

  // Removes node i, which waits at a resource, from its line: the step is to end.
  void StopWaiting(size_t i) {
    if (frames_[i].waits) LeaveLine(i);
  }

  // The counted engine's callbacks for ends of asynchronous calls and nodes to run again.
  struct Listener {
    virtual void Ended(size_t node, Status s) = 0;
    virtual void Again(size_t node) = 0;
    virtual bool failed() const = 0;

   protected:
    ~Listener() = default;
  };
  Listener* listener = nullptr;
  std::vector<int32_t> counts;             // per node of the counted engine, or per batch: predecessors still to end
  std::vector<int32_t> ready;              // queue of ready nodes or batches
  Paces paces;                             // of a plan with batches, by shapes
  std::shared_ptr<const NodeTexts> texts;  // texts for traces, kept for the next one
  std::unique_ptr<ThreadShare> own_share;
  BlockingLine::Guest* blocking = nullptr;  // provides the threads for nodes that block; NULL: the pool does
  std::unique_ptr<EngineMemory> engine;     // of the engine for control flow
  Swapping* swapping = nullptr;             // the session's; NULL: values in lists stay where they are
  bool leaves_passed = false;               // Finish leaves copied fetches in their slots until the next step

  // Reports the outputs of a node that has ended to the trace.
  void NoteOutputs(size_t i);

 private:
  friend class Recordings;
  Status Told(size_t i, const Status& s) const;
  Status Fetch(size_t k, Tensor* fetch);
  std::unique_lock<std::mutex> TracedOrder() const;
  void NoteInputs(size_t i);
  explicit StepState(const Plan* plan);
  Status Init(Runtime* runtime);
  void InitShares();
  void InitSlot(int32_t v);
  void Drop(int32_t v);
  static void ShowShape(Slot* s, const Shape& shape);
  StatusOr<Tensor> MakeOutputOf(const PlanNode& n, uint32_t o, const Shape& shape);
  Status AllocateOutputs(size_t i);
  Status RunKernel(size_t i, bool* pending);
  void LeaveLine(size_t i);
  Status RunCopy(const PlanNode& n);
  Status Enqueue(size_t i);
  Status AwaitCopies(const PlanNode& n, DeviceQueues* queues, DeviceQueues::Which which);
  Status CopyNow(const PlanNode& n, const tw_view& from, const tw_view& to, Stream* stream);
  Status EnqueueCopy(const PlanNode& n, DeviceQueues* queues, const tw_view& from, const tw_view& to);
  Status KeepSource(int32_t v, DeviceQueues* queues, const QueueMark& mark);
  bool EndsLater(const PlanNode& n) const;
  void TellEnd(size_t i);
  Status RootFailure(Status status) const;
  std::vector<LiveTensor> LiveOn(const Device* device) const;
  Status TellMemory(const Status& s, const Device* device) const;
  Device* DeviceOf(int32_t v) const;

  Status GrowBlocks(const std::vector<uint64_t>& bytes);
  size_t LocationOf(const Device* device) const;
  void ShowScratch(size_t i);

  const Plan* plan_;
  Carrier carrier_;
  std::shared_ptr<const PlanShapes> shapes_;
  BlockCount* block_count_ = nullptr;
  std::vector<Slot> slots_;  // values, then stand-ins for opened resources
  std::vector<KernelFrame> frames_;
  std::vector<const tw_view*> in_, out_;
  std::vector<Slot*> source_;
  std::vector<Resource*> opened_;
  std::vector<size_t> opened_slots_;  // per node: index of its first stand-in slot
  // Copies a feed; reuses the previous step's tensor if nobody kept it.
  Status CopyFeed(const Tensor& feed, Tensor* copy);
  void BindFeedViews();
  void DropLargeCopies();

  std::vector<int32_t> feed_views_, device_held_;
  std::vector<Tensor> feed_copies_;  // parallel to copied_feeds of the plan
  bool passes_all_ = false;          // all feeds and fetches are copied
  std::vector<Tensor> scratch_;      // of nodes with shapes known only at run time
  std::vector<int32_t> readers_, readers_template_;
  std::vector<std::vector<Shape>> given_shapes_;       // of outputs that kernels give, with shapes known only at run time
  std::vector<Buffer*> blocks_;                        // per location
  std::vector<uint64_t> block_bytes_;                  // per location
  std::vector<std::unique_ptr<DeviceQueues>> queues_;  // per device of the plan; NULL: it has no queues
  // Per value, if devices have queues: when the copy that makes the value arrives.
  std::vector<QueueMark> marks_;
  // Per value that is copied to a device: the pool where it is made, so that the copy is direct.
  // Empty: none is.
  std::vector<MemoryPool*> staging_;
  // Per value that is a variable's tensor and is read only by kernels of its device's queue: the
  // last of these nodes. Otherwise -1.
  std::vector<int32_t> share_until_;  // empty: no device has queues
  std::unique_ptr<Recordings> recordings_;
  struct CopyEnd {
    StepState* step;
    size_t node;
  };
  std::vector<CopyEnd> copy_ends_;                // per node, for plans with queues
  std::atomic<uint64_t> failed_at_{0};            // time by tw_timeline::Tick; 0: nothing has failed
  std::atomic<const Device*> short_of_{nullptr};  // device that ran out of memory; NULL: none
};

template <class Make>
auto StepState::MakeOn(const Device* device, Make&& make) -> decltype(make()) {
  for (;;) {
    auto made = make();
    if (made.ok() || made.status().code() != absl::StatusCode::kResourceExhausted) return made;
    DeviceQueues* queues = QueuesOf(device);
    if (queues && queues->Reclaim()) continue;
    if (device) short_of_.store(device, std::memory_order_relaxed);
    return made;
  }
}

}  // namespace thalweg
