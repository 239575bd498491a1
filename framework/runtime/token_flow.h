// TokenFlow: the tokens of a step of a graph with control flow: what nodes that only decide choose, to whom a node that is over hands its
// outputs, in which iteration, and which nodes, iterations and loops become ready, begin and end by that.
// Threads: none of its own; the engine's lock guards all of it.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/plan/frame_plan.h"
#include "framework/plan/plan.h"
#include "framework/runtime/frame_call.h"
#include "framework/runtime/loop_run.h"
#include "framework/runtime/step.h"
#include "framework/tensor/tensor.h"

namespace thalweg {

class TokenFlow {
 public:
  struct Listener {
    // The node is to run in that iteration; dead: it is not, and its outputs are dead.
    virtual void Ready(int32_t node, bool dead, LoopRun* loop, Iteration* it) = 0;
    virtual void Fail(Status s) = 0;

   protected:
    ~Listener() = default;
  };
  // What is kept from step to step.
  struct Memory {
    explicit Memory(const FramePlan& plan) : loops(plan) {}
    Loops loops;
    std::vector<Tensor> indices;  // what merges say of the input that came
  };

  TokenFlow(StepState* s, FrameCalls* calls, Memory* memory, Listener* listener)
      : s_(s),
        p_(s->plan()),
        f_(*s->plan().frames),
        calls_(*calls),
        loops_(memory->loops),
        indices_(memory->indices),
        listener_(listener),
        interruptible_(s->cancel || s->deadline) {}

  // The graph itself begins.
  void Begin();
  // Of the node that is over, for HandOn: empty where dead.
  std::vector<Tensor>& outputs() { return outputs_; }
  // The node, which runs no kernel, does what it does, and is over.
  void Decide(int32_t node, bool dead, LoopRun* loop, Iteration* it);
  // The node is over: others are given its outputs.
  void HandOn(int32_t node, bool dead, LoopRun* loop, Iteration* it);
  // At the end: what is fetched is there, and what was asked to run has run or is dead.
  Status Check();
  // Lets go of all that is still under way.
  void Abandon() {
    if (root_) loops_.Abandon(root_);
  }
  // See Loops.
  std::string Where(const LoopRun& loop, const Iteration& it) const { return loops_.Where(loop, it); }

 private:
  void Ready(int32_t node, bool dead, LoopRun* loop, Iteration* it);
  Tensor TakeInput(const FramePlan::Node& n, size_t i, Iteration* it);
  Status NoScalar(int32_t node, const LoopRun& loop, const Iteration& it, std::string_view input, const Tensor& value) const;
  void Choose(const FramePlan::Node& n, Iteration* it);
  Tensor IndexTensor(size_t i);
  void HandIn(int32_t node, bool dead, LoopRun* loop, Iteration* it);
  void HandOut(int32_t node, bool dead, LoopRun* loop, Iteration* it);
  void HandRound(int32_t node, LoopRun* loop, Iteration* it);
  Iteration* StartIteration(LoopRun* loop);
  void DeliverOne(const FramePlan::Node& n, bool dead, Tensor value, LoopRun* loop, Iteration* it);
  void Deliver(const FramePlan::Node& n, bool dead, LoopRun* loop, Iteration* it);
  void DeliverTo(const std::vector<FramePlan::Target>& targets, Tensor value, bool enters, LoopRun* loop, Iteration* it);
  void Arrive(const FramePlan::Target& t, bool live, Tensor* value, bool enters, LoopRun* loop, Iteration* it);
  void ArriveAtMerge(const FramePlan::Target& t, bool live, Tensor* value, bool enters, LoopRun* loop, Iteration* it);
  bool IsOver(const LoopRun& loop, const Iteration& it) const;
  void LetGo(Iteration* it);
  void EndWhatIsOver(LoopRun* loop, Iteration* it);
  Status NotThere(const PlanNode& n, bool dead);
  void ListWaiting(const LoopRun& loop);
  void NoteWaiting(const LoopRun& loop, const Iteration& it);

  StepState* const s_;
  const Plan& p_;
  const FramePlan& f_;
  FrameCalls& calls_;
  Loops& loops_;
  std::vector<Tensor>& indices_;
  Listener* const listener_;
  const bool interruptible_;
  LoopRun* root_ = nullptr;
  std::vector<Tensor> outputs_;        // of the node that is over
  std::vector<int32_t> dead_fetches_;  // nodes
  int32_t stuck_ = 0, named_ = 0;      // nodes that wait in iterations that are over
  std::string stuck_names_;
};

}  // namespace thalweg
