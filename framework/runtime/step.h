// StepState: what one run of a plan needs: slots, frames, counts and memory blocks, made once and used again, so that a warm step makes
// no heap call. A plan keeps as many as ran at the same time.
// Threads: one step at a time per state.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "framework/base/status.h"
#include "framework/plan/plan.h"
#include "framework/runtime/frame.h"

namespace thalweg {

class StepState final : public StepBase {
 public:
  static StatusOr<std::unique_ptr<StepState>> Create(const Plan* plan, Runtime* runtime);
  ~StepState() override;

  void Complete(uint64_t tag, Status s) override;
  bool IsPlanMemory(const Slot* slot) const override;

  const Plan& plan() const { return *plan_; }
  Slot& slot(int32_t v) { return slots_[size_t(v)]; }
  KernelFrame& frame(size_t i) { return frames_[i]; }

  // Binds what the caller feeds; the tensors are lent until the step is over.
  void Feed(const Tensor* feeds);
  // Runs node i, all of it but for the end of an asynchronous call: *pending is then true, and the end is reported through Complete.
  Status RunNode(size_t i, bool* pending);
  // After an asynchronous call: closes resources, checks outputs.
  Status EndNode(size_t i);
  // The node is done with its inputs: held values that nobody reads any more are let go.
  template <bool kAtomic>
  void ReleaseInputs(size_t i);
  // Waits for devices, takes the fetches (if the step went well) and lets everything go.
  Status Finish(Status status, Tensor* fetches);

  // A failure of node i, with what its inputs are.
  Status Describe(size_t i, const Status& s);
  // A device queue of it has failed: not to be used again.
  bool broken() const;

  // Where the counted engine hears of asynchronous ends.
  struct Listener {
    virtual void Ended(size_t node, Status s) = 0;

   protected:
    ~Listener() = default;
  };
  Listener* listener = nullptr;
  std::vector<int32_t> counts;  // the counted engine's: nodes yet to wait for
  std::vector<int32_t> ready;   // its queue

 private:
  explicit StepState(const Plan* plan) : plan_(plan) {}
  Status Init(Runtime* runtime);
  void InitSlot(int32_t v);
  void Drop(int32_t v);
  static void ShowShape(Slot* s, const Shape& shape);
  Status AllocateOutputs(size_t i);
  Status RunKernel(size_t i, bool* pending);
  Status RunCopy(const PlanNode& n);
  Stream* StreamOf(Device* device) const;

  const Plan* plan_;
  std::vector<Slot> slots_;  // values, then what stands in for opened resources
  std::vector<KernelFrame> frames_;
  std::vector<const tw_view*> in_, out_;
  std::vector<Slot*> source_;
  std::vector<Resource*> opened_;
  std::vector<size_t> opened_slots_;  // per node: index of its first stand-in slot
  std::vector<int32_t> feed_views_, device_held_;
  std::vector<Tensor> scratch_;  // of nodes whose shapes only running tells
  std::vector<int32_t> readers_, readers_template_;
  std::vector<std::vector<Shape>> given_shapes_;  // of outputs that kernels give, likewise
  std::vector<Buffer*> blocks_;                   // per location
  std::vector<std::unique_ptr<Stream>> streams_;  // per device of the plan
};

}  // namespace thalweg
