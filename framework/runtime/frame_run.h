// The engine for graphs with control flow. Values are tokens: each belongs to an iteration of a frame that is being run, or is dead. A node
// runs in an iteration once all its inputs are there; where one is dead it does not, and its outputs are dead, until a Merge chooses what
// is alive. This follows TensorFlow's executor. Threads: as RunStep.
#pragma once
#include <functional>

#include "framework/base/status.h"
#include "framework/runtime/step.h"

namespace thalweg {

// Runs the nodes of the plan, whose feeds are bound, and puts what is fetched into the state's slots. REQUIRES: plan().frames.
Status RunFrames(StepState* step);

// The same without waiting, as StartStep: over is told, maybe before this returns, when nothing of it is under way. REQUIRES: the pool has
// a thread for tasks. Throws only before it begins.
void StartFrames(StepState* step, std::function<void(Status)> over);

}  // namespace thalweg
