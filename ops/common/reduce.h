// What ops over chosen axes share: their shape rule, and gradients that undo a reduction.
#pragma once
#include "ops/common/grad.h"

namespace thalweg::ops {

// Inputs: data, axes (a scalar or vector of int32 or int64). Attribute: keep_dims. Axes may be negative, and none twice.
void ReduceRule(const tw::Shape& s);

// e, which has the shape of the node's result, with the reduced axes put back as size 1, so that it broadcasts against input 0.
tw_edge KeepAxes(const tw::Grad& g, tw_edge e);
// e, which has the shape of the node's result, repeated along the reduced axes to the shape of input 0.
tw_edge SpreadOut(const tw::Grad& g, tw_edge e);

}  // namespace thalweg::ops
