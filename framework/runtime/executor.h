// Executor: runs one step of a plan. Two engines: fixed order (one node after the other, or in batches on several threads; loops inside
// kernels may use the pool) and counted (ready counts, work shared with the pool, asynchronous kernels).
// Threads: one step per state at a time; the caller takes part in the work.
#pragma once
#include "framework/base/status.h"
#include "framework/runtime/step.h"

namespace thalweg {

// feeds: one per feed of the plan, lent. fetches: filled on success, empty otherwise. Returns when nothing of the step is under way.
Status RunStep(StepState* step, const Tensor* feeds, Tensor* fetches);

}  // namespace thalweg
