// How often a loop runs, where the graph tells. Threads: one at a time per graph.
#pragma once
#include <cstdint>

#include "framework/graph/function.h"
#include "framework/graph/graph.h"

namespace thalweg {

// The iterations of a While whose condition follows from constants alone: found by computing it. -1: it does not, or they are too many to
// count.
int64_t CountIterations(const Node& loop, const Function& cond, const Function& body);

}  // namespace thalweg
