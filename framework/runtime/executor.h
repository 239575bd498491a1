// Executor: runs one step of a plan. Two engines: fixed order (one node after the other, or in batches on several threads; loops inside
// kernels may use the pool) and counted (ready counts, work shared with the pool, asynchronous kernels).
// Threads: one step per state at a time; the caller takes part in the work.
#pragma once
#include <functional>

#include "framework/base/status.h"
#include "framework/runtime/step.h"

namespace thalweg {

// feeds: one per feed of the plan, lent. fetches: filled on success, empty otherwise. Returns when nothing of the step is under way.
Status RunStep(StepState* step, const Tensor* feeds, Tensor* fetches);

// Hears of the end of a step; on a thread that it must not hold for long. Throws nothing.
using StepDone = std::function<void(Status)>;

// The same without waiting: runs what can be run now, and goes on later, on a thread of the pool's for tasks, whenever an asynchronous call
// is over. While nothing of it can run it holds no thread. done: called once, maybe before this returns; then nothing of the step is under
// way. Where no node of the plan runs asynchronously, or there is no such thread, the step is run here. Throws only before it begins.
void StartStep(StepState* step, const Tensor* feeds, Tensor* fetches, StepDone done);

}  // namespace thalweg
