// The plan of a graph with control flow, from the work graph after all passes. Its values are tensors of their own: how many of them there
// are only running tells.
#pragma once
#include <memory>

#include "framework/plan/plan.h"
#include "framework/plan/work_graph.h"

namespace thalweg {

// REQUIRES: w->flow. Errors: UNIMPLEMENTED for nodes on devices whose memory is not the host's.
StatusOr<std::unique_ptr<Plan>> EmitFrames(WorkGraph* w, StateCache* states);

}  // namespace thalweg
