// What an import leaves out: nodes of ops that nobody defines, and nodes that need one of those. They are no nodes of the graph. Their
// NodeDefs are among the unknown fields of its extras, so that an export has them, and whoever asks for one is told why it is not there.
// Threads: any.
#pragma once
#include <string>
#include <string_view>

#include "framework/base/status.h"
#include "framework/graph/graph.h"

namespace thalweg {

// Names longer than this are no op's: a graph that has one is refused.
constexpr size_t kLongestOpLeftOut = 256;

// NOT_FOUND with all ops that are missing for the node of that name; OK: no such node was left out.
Status CheckNotLeftOut(const Graph& graph, std::string_view name);
// The same for all nodes together.
Status CheckNothingLeftOut(const Graph& graph);

}  // namespace thalweg
