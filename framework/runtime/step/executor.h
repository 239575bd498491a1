// Executor: runs one step of a plan. There are two engines: fixed order (one node after the other,
// or in batches on several threads; loops inside kernels may use the pool) and counted (ready
// counts, work shared with the pool, asynchronous kernels). Threads: one step per state at a time;
// the caller takes part in the work.
#pragma once
#include <functional>

#include "framework/base/status.h"

namespace thalweg {

class StepState;
class Tensor;

// Runs a step and blocks until nothing of it is in progress. feeds: one per feed of the plan,
// borrowed. fetches: filled on success, empty otherwise.
Status RunStep(StepState* step, const Tensor* feeds, Tensor* fetches);

// Called at the end of a step, on a thread that it must not hold for long. Must not throw.
using StepDone = std::function<void(Status)>;

// Starts a step and does not wait. It runs what can run now on the calling thread, and continues on
// a task thread of the pool whenever an asynchronous call ends; while nothing can run the step
// holds no thread. `done` is called once, possibly before this returns; nothing of the step is in
// progress then. If no node of the plan is asynchronous, or there is no task thread, the whole step
// runs here. Throws only before the step begins.
void StartStep(StepState* step, const Tensor* feeds, Tensor* fetches, StepDone done);

}  // namespace thalweg
