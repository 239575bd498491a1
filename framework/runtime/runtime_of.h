// The runtime that a graph belongs to. Threads: any.
#pragma once
#include <memory>

#include "framework/graph/graph.h"
#include "framework/runtime/runtime.h"

namespace thalweg {

// The host of every graph is a Runtime; below this folder the graph knows it as a GraphHost only.
inline Runtime& RuntimeOf(const Graph& graph) { return static_cast<Runtime&>(graph.host()); }
inline std::shared_ptr<Runtime> SharedRuntimeOf(const Graph& graph) { return std::static_pointer_cast<Runtime>(graph.host_ptr()); }

}  // namespace thalweg
