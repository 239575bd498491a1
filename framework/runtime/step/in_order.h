// Runs nodes of a plan one after the other, for the fixed engine and the threads of a batched step.
// Threads: any, on different nodes.
#pragma once
#include "framework/base/status.h"
#include "framework/runtime/step/step.h"

namespace thalweg {

// Calls only the kernel. A C++ kernel may throw although it must not.
inline tw_status* CallSimple(const PlanNode& node, const KernelFrame& frame) {
  try {
    return node.run.kernel->def.execute(&frame.c);
  } catch (...) {
    return ToC(Thrown());
  }
}

// kTraced: the step is traced; an untraced step runs code without any tracing. after: the node that
// the same thread has just run, or -1.
template <bool kTraced>
Status RunNode(StepState* s, size_t i, bool* pending, int32_t after = -1) {
  return kTraced ? s->RunTraced(i, pending, after) : s->RunNode(i, pending);
}

// Runs nodes [begin, end). kShared: other threads run other nodes of the step.
template <bool kTraced, bool kShared>
Status RunInOrder(StepState* s, size_t begin, size_t end) {
  const Plan& p = s->plan();
  const bool interruptible = s->cancel || s->deadline;
  for (size_t i = begin; i < end; ++i) {
    const PlanNode& node = p.nodes[i];
    if (interruptible && (i % 16 == 0 || !node.cheap)) RETURN_IF_ERROR(StepInterrupted(*s));
    if (!kTraced && node.simple) {
      if (tw_status* failed = CallSimple(node, s->frame(i))) [[unlikely]] {
        return s->Describe(i, FromC(failed));
      }
      continue;
    }
    bool pending = false;
    RETURN_IF_ERROR(RunNode<kTraced>(s, i, &pending, i > begin ? int32_t(i - 1) : -1));
    s->ReleaseInputs<kShared>(i);
  }
  return Status();
}

}  // namespace thalweg
