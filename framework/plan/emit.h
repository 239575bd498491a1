// From the work graph, placed, to the flat plan: copies between devices, kinds of values, order, in-place pairs, offsets, engine.
// Of graphs with control flow: emit_frames.h. Threads: one.
#pragma once
#include <memory>
#include <vector>

#include "framework/plan/plan.h"
#include "framework/plan/work_graph.h"

namespace thalweg {

// *edges: per value of the plan, what it is, wherever it lies. Errors: INVALID_ARGUMENT for sizes that cannot be; RESOURCE_EXHAUSTED; what
// kernels say.
StatusOr<std::unique_ptr<Plan>> Emit(WorkGraph* w, StateCache* states, std::vector<WorkEdge>* edges);

}  // namespace thalweg
