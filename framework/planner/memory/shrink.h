// Shrink: changes a placed work graph so that its values need less memory at once. A value that
// waits long for its last readers is computed again for them, or waits in host memory. Results keep
// their bits. Threads: one.
#pragma once
#include <cstdint>
#include <unordered_map>

#include "framework/base/status.h"
#include "framework/plan/plan.h"
#include "framework/planner/work_graph.h"

namespace thalweg {

struct ShrinkGoal {
  // At most so many bytes are to be in use at once; 0: few, but not at any price.
  uint64_t bytes = 0;
  const Device* device = nullptr;  // the device whose memory counts; NULL: all memories together
  // Only values that nodes with the mark kReadsLateAttr read late, and that unmarked nodes make.
  bool marked = false;
  bool recompute = true;
  std::unordered_map<const Node*, uint64_t> scratch;  // bytes that kernels need besides their outputs, as far as known
};

// Nodes that run a second time stand right before their first reader and wait for the gradient that
// it needs, so that no engine runs them early. A value of a device that waits in host memory passes
// through two nodes there. Adds what was done to w->memory. Does nothing to a graph with
// control flow of primitives. Errors: those of making nodes.
Status Shrink(WorkGraph* w, const ShrinkGoal& goal);

// Returns true if some node has the mark kReadsLateAttr.
bool HasLateReaders(const WorkGraph& w);

}  // namespace thalweg
