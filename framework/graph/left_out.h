// Nodes that an import leaves out: nodes of undefined ops, and nodes that need one of those. They
// are not nodes of the graph. Their NodeDefs are kept in the unknown fields of the graph's extras,
// so that exports contain them and look-ups can explain why a node is missing. Threads: any.
#pragma once
#include <string>
#include <string_view>

#include "framework/base/status.h"
#include "framework/graph/graph.h"

namespace thalweg {

// A graph with an undefined op whose name is longer than this is refused: such a name is no op's.
constexpr size_t kLongestOpLeftOut = 256;

// NOT_FOUND lists all ops that the named node misses; OK if it was not left out.
Status CheckNotLeftOut(const Graph& graph, std::string_view name);
// Checks all left-out nodes together.
Status CheckNothingLeftOut(const Graph& graph);

}  // namespace thalweg
