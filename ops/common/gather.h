// What gathers and scatters share: shapes of results, index vectors, and the gradient of what was gathered from.
#pragma once
#include <functional>

#include "ops/common/grad.h"

namespace thalweg::ops {

// params[:axis] + indices[batch:] + params[axis + 1:]. axis: nullopt where it is not known. batch: axes that both have in common at the
// front, may be negative (counted from the end of indices).
MaybeDims GatheredShape(const tw::Shape& s, const MaybeDims& params, const MaybeDims& indices, std::optional<int64_t> axis, int64_t batch);

// What to do about an index that is outside: "" and "DEFAULT" are the device's own way, which here is an error.
void CheckBadIndicesPolicy(const tw::Attrs& a);
// The length of the index vectors along the last axis of 'indices', checked against the axes that they walk through; -1: unknown.
// REQUIRES: the rank of indices is known and not 0. name: that of the input whose dims `params` are.
int64_t IndexLength(const MaybeDims& indices, const MaybeDims& params, const char* name);

// Sets the gradient of input 0 for a gather of its rows (axis 0, no batch axes) by input 1: sparse. inner: emits the shape of one row,
// which is not always needed.
void SparseRows(const tw::Grad& g, const std::function<tw_edge()>& inner);
// The dense gradient for any axis: dy added up where it came from. shape: of the params, an int32 vector. axis: an int32 scalar that is
// not negative. batch: not negative.
tw_edge ScatterBack(const tw::Grad& g, tw_edge shape, tw_edge axis, int64_t batch);

}  // namespace thalweg::ops
