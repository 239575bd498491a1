// Places the planned values of a step in memory and chooses the engine for a plan: the decisions
// that depend on sizes. Threads: one.
#pragma once
#include "framework/plan/node_work.h"
#include "framework/plan/plan.h"
#include "framework/planner/compile.h"

namespace thalweg {

// Sets offsets, in-place pairs, the bytes of blocks and the peak. REQUIRES: bytes of values and
// scratch; nodes in their final order.
void LayOut(const Plan& plan, PlanShapes* shapes);

// Marks the heavy nodes.
void MarkHeavy(const Plan& plan, PlanShapes* shapes);
// Returns true if some kernel completes asynchronously, which the fixed engine cannot wait for.
bool NeedsCounts(const Plan& plan);
// Returns true if the options ask for the counted engine, or the plan suits it. REQUIRES:
// MarkHeavy.
bool WantsCounts(const Plan& plan, const PlanOptions& options, const PlanShapes& shapes);

}  // namespace thalweg
