// Shared parts of gathers and scatters: shapes of results, index vectors, and the gradient with
// respect to the gathered input.
#pragma once
#include <functional>

#include "ops/common/grad.h"

namespace thalweg::ops {

// Returns params[:axis] + indices[batch:] + params[axis + 1:]. axis: nullopt if unknown. batch:
// number of leading axes that both share; may be negative (counted from the end of indices).
MaybeDims GatheredShape(const tw::Shape& s, const MaybeDims& params, const MaybeDims& indices, std::optional<int64_t> axis, int64_t batch);

// Checks the policy for indices out of range: "" and "DEFAULT" select the device's own policy,
// which here is an error.
void CheckBadIndicesPolicy(const tw::Attrs& a);
// Returns the length of the index vectors along the last axis of 'indices', after a check against
// the axes that they index; -1: unknown. REQUIRES: the rank of indices is known and not 0. name:
// name of the input with dims `params`.
int64_t IndexLength(const MaybeDims& indices, const MaybeDims& params, const char* name);

// Sets a sparse gradient of input 0 for a gather of its rows (axis 0, no batch axes) by input 1.
// inner: emits the shape of one row; called only if it is needed.
void SparseRows(const tw::Grad& g, const std::function<tw_edge()>& inner);
// Returns the dense gradient for any axis: adds dy to the rows that it was gathered from. shape: of
// the params, an int32 vector. axis: a non-negative int32 scalar. batch: not negative.
tw_edge ScatterBack(const tw::Grad& g, tw_edge shape, tw_edge axis, int64_t batch);

}  // namespace thalweg::ops
