// TokenFlow: the tokens of a step of a graph with control flow. It runs the nodes that only route
// values, passes the outputs of a finished node on to the right iteration, and tracks which nodes,
// iterations and loops thereby become ready, begin and end. Threads: none of its own; the engine's
// lock guards everything.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/plan/frame_plan.h"
#include "framework/plan/plan.h"
#include "framework/runtime/flow/frame_call.h"
#include "framework/runtime/flow/loop_run.h"
#include "framework/runtime/step/step.h"
#include "framework/tensor/tensor.h"

namespace thalweg {

class TokenFlow {
 public:
  struct Listener {
    // The node is to run in the iteration; if dead, it does not run and its outputs are dead.
    virtual void Ready(int32_t node, bool dead, LoopRun* loop, Iteration* it) = 0;
    virtual void Fail(Status s) = 0;

   protected:
    ~Listener() = default;
  };
  // Memory kept from step to step.
  struct Memory {
    explicit Memory(const FramePlan& plan) : loops(plan) {}
    Loops loops;
    std::vector<Tensor> indices;  // index outputs of merges
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

  // Begins the outermost frame, the graph itself.
  void Begin();
  // Outputs of the finished node, for HandOn; empty where dead.
  std::vector<Tensor>& outputs() { return outputs_; }
  // Executes a node that runs no kernel, and hands its outputs on.
  void Decide(int32_t node, bool dead, LoopRun* loop, Iteration* it);
  // Ends the node and passes its outputs on.
  void HandOn(int32_t node, bool dead, LoopRun* loop, Iteration* it);
  // Checks, at the end, that all fetches have values and that all targets have run or are dead.
  Status Check();
  // Releases everything still in progress.
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
  std::vector<Tensor> outputs_;        // of the finished node
  std::vector<int32_t> dead_fetches_;  // nodes of fetches that are dead
  int32_t stuck_ = 0, named_ = 0;      // stuck_: nodes whose inputs do not come; named_: those in stuck_names_
  std::string stuck_names_;
};

}  // namespace thalweg
