// Converts the placed work graph to the flat plan: copies between devices, kinds of values, order,
// in-place pairs, offsets, engine. emit_frames.h handles graphs with control flow. Threads: one.
#pragma once
#include <memory>
#include <vector>

#include "framework/plan/plan.h"
#include "framework/planner/compile.h"
#include "framework/planner/work_graph.h"

namespace thalweg {

// *edges: per value of the plan, the edge that it holds, in whatever memory it lies. Errors:
// INVALID_ARGUMENT for impossible sizes; the errors of kernels. The
// plan may need more than the memory budget (budget.h).
StatusOr<std::unique_ptr<Plan>> Emit(WorkGraph* w, StateCache* states, std::vector<WorkEdge>* edges);

}  // namespace thalweg
