// StepState: what one run of a plan needs: slots, frames, counts and memory blocks, made once and used again, so that a warm step makes
// no heap call. A plan keeps as many as ran at the same time.
// Threads: one step at a time per state.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "framework/base/status.h"
#include "framework/plan/plan.h"
#include "framework/runtime/blocking_line.h"
#include "framework/runtime/carrier.h"
#include "framework/runtime/device_queues.h"
#include "framework/runtime/frame.h"
#include "framework/runtime/memory_story.h"
#include "framework/runtime/pace.h"
#include "framework/runtime/step_trace.h"
#include "framework/runtime/thread_pool.h"

namespace thalweg {

// Bytes of the blocks of a session's states.
struct BlockCount {
  std::atomic<uint64_t> bytes{0}, peak{0};
  void Add(uint64_t n) {
    const uint64_t now = bytes.fetch_add(n, std::memory_order_relaxed) + n;
    uint64_t most = peak.load(std::memory_order_relaxed);
    while (most < now && !peak.compare_exchange_weak(most, now, std::memory_order_relaxed)) {
    }
  }
};

// What an engine keeps from step to step.
struct EngineMemory {
  virtual ~EngineMemory() = default;
};

class Recordings;

class StepState final : public StepBase {
 public:
  // blocks: counts the memory of the state's blocks; may be NULL.
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

  // Sizes of the plan, its own or worked out from it: needed before the first step, and whenever feeds have other shapes. Errors:
  // RESOURCE_EXHAUSTED; the state is then of no use any more.
  Status Bind(std::shared_ptr<const PlanShapes> shapes);

  const Plan& plan() const { return *plan_; }
  const PlanShapes* shapes() const { return shapes_.get(); }  // NULL: not bound
  Slot& slot(int32_t v) { return slots_[size_t(v)]; }
  KernelFrame& frame(size_t i) { return frames_[i]; }

  // Binds what the caller feeds; the tensors are lent until the step is over. Nothing, where the plan takes its feeds.
  void Feed(const Tensor* feeds);
  // The step reads copies in place of Plan::copied_feeds. Errors: RESOURCE_EXHAUSTED.
  Status CopyFeeds(const Tensor* feeds);
  // Before the step, of a plan that takes its feeds: they are the step's from now on.
  void Take(Tensor* feeds);
  // On a thread beside those of the step.
  void Blocking(std::function<void()> f) { blocking ? blocking->Run(std::move(f)) : pool->Blocking(std::move(f)); }
  // Fills a feed that the plan copies; and a tensor with what it copies of a fetch (PlanValue::kPassed).
  void CopyIn(int32_t v, const void* data);
  StatusOr<Tensor> CopyOut(int32_t v) const;
  // Runs node i, all of it but for the end of an asynchronous call: *pending is then true, and the end is reported through Complete.
  Status RunNode(size_t i, bool* pending);
  // The same with notes for the trace. after: see StepTrace::Take. REQUIRES: there is one.
  Status RunTraced(size_t i, bool* pending, int32_t after);
  // After an asynchronous call: closes resources, checks outputs.
  Status EndNode(size_t i);
  // The node is done with its inputs: held values that nobody reads any more are let go.
  template <bool kAtomic>
  void ReleaseInputs(size_t i);
  // Waits for devices, takes the fetches (if the step went well) and lets everything go.
  Status Finish(Status status, Tensor* fetches);

  // What queues were given by the plan's runs; NULL: it has none.
  Recordings* recordings() const { return recordings_.get(); }

  // A failure of node i, with what its inputs are.
  Status Describe(size_t i, const Status& s) noexcept;
  // Something of the step has failed: what turns up later on its devices is not the cause.
  void NoteFailure() noexcept;

  // What the step uses of a device; NULL: the device has no queues.
  DeviceQueues* QueuesOf(const Device* device) const;
  // Returns when all that was under way on devices is over: the first failure. kDrain: nothing comes any more, and what was kept for it
  // goes.
  enum Under : uint8_t { kSettle, kDrain };
  Status AwaitDevices(Under what) const {
    Status first;
    for (const auto& q : queues_) {
      Status s = !q ? Status() : what == kDrain ? q->Drain() : q->Settle();
      if (first.ok()) first = std::move(s);
    }
    return first;
  }
  // Makes a tensor, or a buffer, in memory of the device; where that is short, waits for what its queues still hold.
  template <class Make>
  auto MakeOn(const Device* device, Make&& make) -> decltype(make());
  // A device queue of it has failed: not to be used again.
  bool broken() const;

  // Node i is not run again, although it waits at a resource: the step is to end.
  void StopWaiting(size_t i) {
    if (frames_[i].waits) LeaveLine(i);
  }

  // Where the counted engine hears of asynchronous ends, and of nodes that are to be run again.
  struct Listener {
    virtual void Ended(size_t node, Status s) = 0;
    virtual void Again(size_t node) = 0;
    virtual bool failed() const = 0;

   protected:
    ~Listener() = default;
  };
  Listener* listener = nullptr;
  std::vector<int32_t> counts;             // per node of the counted engine, or per batch: how many it is yet to wait for
  std::vector<int32_t> ready;              // their queue
  Paces paces;                             // of a plan with batches, by its shapes
  std::shared_ptr<const NodeTexts> texts;  // what traces say of the plan's nodes, kept for the next one
  std::unique_ptr<ThreadShare> own_share;
  BlockingLine::Guest* blocking = nullptr;  // whose threads nodes that block hold; NULL: the pool's
  std::unique_ptr<EngineMemory> engine;     // of the engine for control flow
  Swapping* swapping = nullptr;             // the session's; NULL: what lists keep stays where it is
  bool leaves_passed = false;               // Finish leaves fetches that are copied in their slots, until the next step

  // Tells the trace of the outputs of a node that has ended.
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
  std::vector<Slot> slots_;  // values, then what stands in for opened resources
  std::vector<KernelFrame> frames_;
  std::vector<const tw_view*> in_, out_;
  std::vector<Slot*> source_;
  std::vector<Resource*> opened_;
  std::vector<size_t> opened_slots_;  // per node: index of its first stand-in slot
  // What the step reads in place of a feed: a copy, in the tensor of the step before where nobody kept that.
  Status CopyFeed(const Tensor& feed, Tensor* copy);
  void BindFeedViews();
  void DropLargeCopies();

  std::vector<int32_t> feed_views_, device_held_;
  std::vector<Tensor> feed_copies_;  // per copied_feeds of the plan
  bool passes_all_ = false;          // all feeds and fetches are copied
  std::vector<Tensor> scratch_;      // of nodes whose shapes only running tells
  std::vector<int32_t> readers_, readers_template_;
  std::vector<std::vector<Shape>> given_shapes_;       // of outputs that kernels give, likewise
  std::vector<Buffer*> blocks_;                        // per location
  std::vector<uint64_t> block_bytes_;                  // likewise
  std::vector<std::unique_ptr<DeviceQueues>> queues_;  // per device of the plan; NULL: it has none
  // Of values that copies make, where devices have queues: when they are there.
  std::vector<QueueMark> marks_;
  // Of values that are copied to a device: where they are made, so that the copy needs no detour. Empty: none is.
  std::vector<MemoryPool*> staging_;
  // Of values that are the tensor of a variable, where only kernels of its device's queue read them: the last of these. Else -1.
  std::vector<int32_t> share_until_;  // empty: there are none
  std::unique_ptr<Recordings> recordings_;
  struct CopyEnd {
    StepState* step;
    size_t node;
  };
  std::vector<CopyEnd> copy_ends_;                // per node, of plans with queues
  std::atomic<uint64_t> failed_at_{0};            // on the clock of tw_timeline::Tick; 0: nothing has failed
  std::atomic<const Device*> short_of_{nullptr};  // whose memory was asked for in vain; NULL: none's
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
