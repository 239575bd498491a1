// Tells whether a node, or one that it calls, may have to wait for an event elsewhere, and so is
// better started than called.
// Threads: one per work graph.
#pragma once
#include "framework/graph/graph.h"
#include "framework/planner/work_graph.h"

namespace thalweg {

// Returns true if the node has an asynchronous kernel.
bool MayWait(const WorkGraph& w, const Node& node);

// Returns true if a function that the node calls, directly or through others, has nodes with
// asynchronous kernels.
bool CallsWhatWaits(const WorkGraph& w, const Node& node);

}  // namespace thalweg
