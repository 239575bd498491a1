// Batches: nodes of a plan that one thread runs one after the other, so that threads can share
// light nodes too.
// Threads: one.
#pragma once
#include "framework/plan/plan.h"
#include "framework/planner/compile.h"

namespace thalweg {

// Cuts the plan's order into batches if some of them can run side by side; otherwise makes none. A
// batch waits only for the batches that its first node waits for. REQUIRES: nodes in their final
// order; the engine is chosen.
void FormBatches(const PlanOptions& options, Plan* plan);

}  // namespace thalweg
