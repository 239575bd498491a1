// Whether a node, or one that it calls, may have to wait for what happens elsewhere, and so is better not called but started.
// Threads: one per work graph.
#pragma once
#include "framework/graph/graph.h"
#include "framework/plan/work_graph.h"

namespace thalweg {

// The node has an asynchronous kernel.
bool MayWait(const WorkGraph& w, const Node& node);

// A function that the node calls, or one that this one calls, has nodes with asynchronous kernels.
bool CallsWhatWaits(const WorkGraph& w, const Node& node);

}  // namespace thalweg
