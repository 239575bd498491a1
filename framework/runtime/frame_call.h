// FrameCall: one call of a kernel in a step of a graph with control flow, where a node may run many times, also side by side. FrameCalls
// makes them, runs them and uses them again.
// Threads: a call is used by one thread at a time; taking and giving back needs the lock of the engine.
#pragma once
#include <cstdint>
#include <memory>
#include <string_view>
#include <thread>
#include <vector>

#include "framework/base/status.h"
#include "framework/plan/plan.h"
#include "framework/runtime/frame.h"
#include "framework/runtime/step.h"

namespace thalweg {

struct Iteration;
struct LoopRun;

struct FrameCall {
  KernelFrame frame{};  // first: the frame of a kernel that this engine runs is the FrameCall
  int32_t node = -1;
  LoopRun* loop = nullptr;
  Iteration* iteration = nullptr;
  std::vector<Slot> slots;  // inputs, outputs, what stands in for opened resources
  std::vector<const tw_view*> views;
  std::vector<Slot*> source;
  std::vector<Resource*> opened;
  std::vector<Shape> shapes;  // of outputs, where only the inputs tell
  Tensor scratch;
  int64_t began = 0, left = 0, ended = 0;  // for the trace
  uint64_t allocated = 0;
  bool failed = false;
  bool dead = false;  // it is over, and its outputs are dead
  std::thread::id thread;
  std::vector<int64_t> dims;  // for the trace, see AddDims
  Slot& in(size_t i) { return slots[i]; }
  Slot& out(size_t o) { return slots[frame.c.n_in + o]; }
};

class FrameCalls final : public StepBase {
 public:
  // Who hears of calls that end later.
  struct Listener {
    virtual void Ended(FrameCall* call, Status s) = 0;
    virtual void Again(FrameCall* call) = 0;
    virtual bool Failed() const = 0;

   protected:
    ~Listener() = default;
  };

  explicit FrameCalls(const Plan& plan) : p_(plan), free_(plan.nodes.size()) {}
  // The call that a kernel's frame is of; NULL: of a graph without control flow.
  static FrameCall* CallOf(const tw_frame* f);
  // A step begins: what the state says of it.
  void Begin(StepState* step, Listener* listener);

  FrameCall* Take(int32_t node);
  // outputs: what of it lives on.
  void GiveBack(FrameCall* c, const std::vector<Tensor>& outputs = {});
  // The step is done with a value: memory of a device goes when its queues are past what they hold now.
  void LetGo(Tensor t);
  bool has_queues() const { return has_queues_; }
  // All of it but the end of a call that goes on: *pending is then true, and the listener hears. REQUIRES: the inputs are there.
  Status Run(FrameCall* c, bool* pending);
  // After a call that went on: checks the outputs.
  Status End(FrameCall* c);
  // It is not run again, although it waits at a resource.
  void StopWaiting(FrameCall* c);
  // A failure, with what the inputs are. where: "in iteration 3 of frame 'loop'", or "".
  Status Describe(FrameCall* c, const Status& s, std::string_view where) const;

  void Complete(uint64_t tag, Status s) override;
  void Again(uint64_t tag) override { listener_->Again(Of(tag)); }
  bool Failed() const override { return listener_->Failed(); }
  // The slots of a call are its own.
  bool IsLastReader(const Slot* slot) const override { return bool(slot->held); }
  Carrier* carrier() override { return step_->carrier(); }
  // Kernels of its device start after that.
  Status ArrivesWith(const Slot* slot, const QueueMark& mark) override;

 private:
  static FrameCall* Of(uint64_t tag) { return reinterpret_cast<FrameCall*>(uintptr_t(tag)); }
  static uint64_t TagOf(const FrameCall* c) { return uint64_t(reinterpret_cast<uintptr_t>(c)); }
  std::unique_ptr<FrameCall> Make(int32_t node);
  Status Execute(FrameCall* c, bool* pending);
  Status Enqueue(FrameCall* c);
  Status RunCopy(FrameCall* c, bool* pending);
  Status EnqueueCopy(FrameCall* c, DeviceQueues* queues, Device* there, bool* pending);
  static void TellEnd(void* call, const tw_status* why);  // of a copy
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
