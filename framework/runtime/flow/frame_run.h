// The engine for graphs with control flow. Values are tokens: each belongs to an iteration of a
// running frame, and may be dead. A node runs in an iteration once all its inputs are there; if one
// of them is dead, the node does not run and its outputs are dead, until a Merge chooses the live
// one. This follows TensorFlow's executor. Threads: as RunStep.
#pragma once
#include <functional>

#include "framework/base/status.h"
#include "framework/runtime/step/step.h"

namespace thalweg {

// Runs the nodes of the plan, whose feeds are bound, and puts fetched values into the state's
// slots. REQUIRES: plan().frames.
Status RunFrames(StepState* step);

// Starts the nodes and does not wait, as StartStep. Calls `over` when nothing of the step is in
// progress, possibly before this returns. REQUIRES: the pool has a thread for tasks. Throws only
// before the step begins.
void StartFrames(StepState* step, std::function<void(Status)> over);

}  // namespace thalweg
