// Batches: nodes of a plan that one thread runs one after the other, so that light nodes too can be shared among threads.
// Threads: one.
#pragma once
#include "framework/plan/plan.h"

namespace thalweg {

// Cuts the plan's order into batches where some of them can run side by side; otherwise there are none. A batch waits for no more than its
// first node does. REQUIRES: nodes in their final order; the engine is chosen.
void FormBatches(const PlanOptions& options, Plan* plan);

}  // namespace thalweg
