// FrameCall: one kernel call in a step of a graph with control flow, where a node may run many
// times, also concurrently. FrameCalls makes, runs and reuses them. Threads: one thread at a time
// uses a call; Take and GiveBack need the engine's lock.
#pragma once
#include <cstdint>
#include <memory>
#include <string_view>
#include <thread>
#include <vector>

#include "framework/base/status.h"
#include "framework/plan/plan.h"
#include "framework/runtime/step/frame.h"
#include "framework/runtime/step/step.h"

namespace thalweg {

struct Iteration;
struct LoopRun;

struct FrameCall {
  KernelFrame frame{};  // must be first: this engine's kernel frames are FrameCalls
  int32_t node = -1;
  LoopRun* loop = nullptr;
  Iteration* iteration = nullptr;
  std::vector<Slot> slots;  // inputs, outputs, then stand-ins for opened resources
  std::vector<const tw_view*> views;
  std::vector<Slot*> source;
  std::vector<Resource*> opened;
  std::vector<Shape> shapes;  // shapes of outputs that depend on the inputs of the call
  Tensor scratch;
  int64_t began = 0, left = 0, ended = 0;  // for the trace
  uint64_t allocated = 0;
  bool failed = false;
  bool dead = false;  // the call has ended with dead outputs
  std::thread::id thread;
  std::vector<int64_t> dims;  // for the trace, see AddDims
  Slot& in(size_t i) { return slots[i]; }
  Slot& out(size_t o) { return slots[frame.c.n_in + o]; }
};

class FrameCalls final : public StepBase {
 public:
  // Receives the ends of calls that outlive Run.
  struct Listener {
    virtual void Ended(FrameCall* call, Status s) = 0;
    virtual void Again(FrameCall* call) = 0;
    virtual bool Failed() const = 0;

   protected:
    ~Listener() = default;
  };

  explicit FrameCalls(const Plan& plan) : p_(plan), free_(plan.nodes.size()) {}
  // Returns the call that owns a kernel's frame; NULL for a graph without control flow.
  static FrameCall* CallOf(const tw_frame* f);
  // Begins a step: copies its settings from the state.
  void Begin(StepState* step, Listener* listener);

  FrameCall* Take(int32_t node);
  // outputs: tensors that stay in use; their memory is not released.
  void GiveBack(FrameCall* c, const std::vector<Tensor>& outputs = {});
  // Releases a value. Device memory is kept until its queues have passed what they hold now.
  void LetGo(Tensor t);
  bool has_queues() const { return has_queues_; }
  // Runs the call. If it continues asynchronously, sets *pending, and the listener is told of the
  // end. REQUIRES: all inputs are there.
  Status Run(FrameCall* c, bool* pending);
  // Finishes a call that continued: checks the outputs.
  Status End(FrameCall* c);
  // Removes a call that waits at a resource from its line; it will not run again.
  void StopWaiting(FrameCall* c);
  // Describes a failure with the shapes of the inputs. where: "in iteration 3 of frame 'loop'", or
  // "".
  Status Describe(FrameCall* c, const Status& s, std::string_view where) const;

  void Complete(uint64_t tag, Status s) override;
  void Again(uint64_t tag) override { listener_->Again(Of(tag)); }
  bool Failed() const override { return listener_->Failed(); }
  // A call owns its slots.
  bool IsLastReader(const Slot* slot) const override { return bool(slot->held); }
  Carrier* carrier() override { return step_->carrier(); }
  // Makes kernels of the slot's device start after the mark.
  Status ArrivesWith(const Slot* slot, const QueueMark& mark) override;

 private:
  static FrameCall* Of(uint64_t tag) { return reinterpret_cast<FrameCall*>(uintptr_t(tag)); }
  static uint64_t TagOf(const FrameCall* c) { return uint64_t(reinterpret_cast<uintptr_t>(c)); }
  std::unique_ptr<FrameCall> Make(int32_t node);
  Status Execute(FrameCall* c, bool* pending);
  Status Enqueue(FrameCall* c);
  Status RunCopy(FrameCall* c, bool* pending);
  Status EnqueueCopy(FrameCall* c, DeviceQueues* queues, Device* there, bool* pending);
  static void TellEnd(void* call, const tw_status* why);  // callback of a copy
  Status AllocateOutputs(FrameCall* c);
  Status InferOutputs(FrameCall* c);
  bool TakeOver(FrameCall* c, uint32_t o, const Shape& shape);
  Status Allocate(FrameCall* c, uint32_t o, const Shape& shape);
  Status TakeScratch(FrameCall* c, uint64_t bytes);

  const Plan& p_;
  StepState* step_ = nullptr;
  bool has_queues_ = false;
  const PlanShapes* shapes_ = nullptr;
  Listener* listener_ = nullptr;
  std::vector<std::unique_ptr<FrameCall>> all_;
  std::vector<std::vector<FrameCall*>> free_;  // per node
};

}  // namespace thalweg
