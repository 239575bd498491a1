// Marks of nodes that call functions: attributes that no op declares. Graphs keep and store them like
// other attributes whose names begin with an underscore. Threads: constants.
#pragma once
#include <string>
#include <string_view>

#include "framework/graph/graph.h"

namespace thalweg {

// The gradient of the node recomputes the values that it reads, whatever the caller of AddGradients
// asks for.
inline constexpr std::string_view kRecomputeAttr = "_thalweg_recompute";
// The node stays a call. The gradient of a call that recomputes has this mark: among the nodes of the
// caller, the recomputed nodes would be merged with the forward nodes, or would run before the
// incoming gradient exists, and either keeps their values in memory.
inline constexpr std::string_view kNoInlineAttr = "_thalweg_no_inline";
// The node belongs to a gradient that was asked to recompute: the values of unmarked nodes that it
// reads may be computed again for it. Planning decides which (planner/memory/shrink.h).
inline constexpr std::string_view kReadsLateAttr = "_thalweg_reads_late";

inline bool IsMarked(const Node& node, std::string_view mark) {
  return !node.extra_attrs().empty() && node.extra_attrs().count(std::string(mark)) > 0;
}
// Returns true if a call saves memory only if the memory that it works in is free between calls:
// every such call in a graph has a function of its own.
inline bool FreesMemory(const Node& node) { return IsMarked(node, kRecomputeAttr) || IsMarked(node, kNoInlineAttr); }

}  // namespace thalweg
