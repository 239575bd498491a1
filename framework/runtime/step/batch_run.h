// RunBatches: runs one step of a plan that has batches, on all threads that the step may use.
// Threads: one step at a time per state.
#pragma once
#include "framework/base/status.h"
#include "framework/runtime/step/step.h"

namespace thalweg {

// REQUIRES: the step has a pool.
template <bool kTraced>
Status RunBatches(StepState* step);

}  // namespace thalweg
