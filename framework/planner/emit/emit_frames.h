// Makes the plan of a graph with control flow from the work graph after all passes. Each of its
// values has its own tensor, because only running tells how many there are.
#pragma once
#include <memory>

#include "framework/plan/plan.h"
#include "framework/planner/compile.h"
#include "framework/planner/work_graph.h"

namespace thalweg {

// REQUIRES: w->flow. Errors: UNIMPLEMENTED for nodes on devices whose memory is not host memory.
StatusOr<std::unique_ptr<Plan>> EmitFrames(WorkGraph* w, StateCache* states);

}  // namespace thalweg
