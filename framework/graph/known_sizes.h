// Sizes that follow from vectors of which some elements are known only: Shape(x) of a shape that is
// known in part, Pack(n, 3). A rule gets a value only if all of its elements are known, so without
// this file Fill(Pack(n, 3), 0) would have two unknown sizes. Threads: any.
#pragma once
#include "framework/graph/folding_budget.h"
#include "framework/graph/graph.h"
#include "framework/graph/shape_inference.h"

namespace thalweg {

// Adds sizes to the shapes of a node whose rule has run. query: that of the rule.
//
// How: an element that is not known is replaced by one number and then by another, and the rule runs
// with both. A size that changes with the number is unknown. A size that stays, at an axis whose
// element is known, is known. A rule that does not use the elements as sizes, one for each axis, is
// recognised by a size that stays where the element is unknown; then nothing is added.
void AddKnownSizes(GraphHost& host, FoldingBudget& folding, const Node& node, const ShapeQuery& query, ShapeAnswer* answer);

}  // namespace thalweg
