// The iteration count of a loop, if the graph determines it. Threads: one at a time per graph.
#pragma once
#include <cstdint>

#include "framework/graph/function.h"
#include "framework/graph/graph.h"

namespace thalweg {

// Returns the iterations of a While whose condition depends only on constants, by evaluating it.
// Returns -1 if it depends on other values, or if there are too many iterations to count.
int64_t CountIterations(const Node& loop, const Function& cond, const Function& body);

}  // namespace thalweg
