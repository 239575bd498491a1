// Runs: consecutive nodes of a plan that only enqueue work on one device's queue, so that this work
// can be recorded and enqueued again as one. Threads: one.
#pragma once
#include <vector>

#include "framework/plan/plan.h"
#include "framework/planner/compile.h"

namespace thalweg {

// Returns true if most of the plan's work can be recorded.
bool WorthRecording(const Plan& plan, const PlanShapes& shapes, const PlanOptions& options);
// Keeps the given order, but moves reads of variables to the beginning if nothing has to precede
// them, so that fewer reads lie between the nodes of a run.
std::vector<int32_t> OrderForRuns(const Plan& plan);
// REQUIRES: nodes in their final order.
std::vector<PlanRun> FindRuns(const Plan& plan, const PlanShapes& shapes);

}  // namespace thalweg
