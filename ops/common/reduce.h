// Shared parts of ops over chosen axes: their shape rule, and gradients that undo a reduction.
#pragma once
#include "ops/common/grad.h"

namespace thalweg::ops {

// Inputs: data, axes (a scalar or vector of int32 or int64). Attribute: keep_dims. Axes may be
// negative; none may repeat.
void ReduceRule(const tw::Shape& s);

// Returns e, which has the shape of the node's result, with the reduced axes as size 1, so that it
// broadcasts against input 0.
tw_edge KeepAxes(const tw::Grad& g, tw_edge e);
// Returns e, which has the shape of the node's result, repeated along the reduced axes to the shape
// of input 0.
tw_edge SpreadOut(const tw::Grad& g, tw_edge e);

}  // namespace thalweg::ops
