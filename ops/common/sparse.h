// Sparse tensors in shape rules: a matrix of places with a column for each axis, a vector of values,
// and a vector of sizes. Used by the ops on sparse tensors. For shape callbacks only; every check
// throws tw::Error{TW_INVALID_ARGUMENT}.
#pragma once
#include "ops/common/shape.h"

namespace thalweg::ops {

// One part of a sparse tensor: the flat number of the input, and its name in messages.
struct SparsePart {
  uint32_t input;
  std::string name;
};

// The number of stored elements and the rank; -1 if unknown.
struct SparseCounts {
  int64_t elements, rank;
};

// Checks the parts against each other, and the sizes if they are known. values: NULL if the op has
// no values.
SparseCounts WantSparse(const tw::Shape& s, const SparsePart& indices, const SparsePart* values, const SparsePart& shape);
inline SparseCounts WantSparse(const tw::Shape& s, const SparsePart& indices, const SparsePart& values, const SparsePart& shape) {
  return WantSparse(s, indices, &values, shape);
}

// Returns the values of the vector of sizes; nullopt if they are unknown. Their product may exceed
// int64, since only stored elements take memory. Refuses negative sizes.
MaybeDims SparseSizes(const tw::Shape& s, const SparsePart& shape);

}  // namespace thalweg::ops
