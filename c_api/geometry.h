// Checks of the memory and shapes that callers describe.
#pragma once
#include <cstdint>

#include "framework/base/dtype.h"
#include "framework/base/status.h"
#include "framework/tensor/lent.h"
#include "framework/tensor/tensor.h"

namespace thalweg {

// Converts a shape that may be partly unknown (-1) or unknown (rank -1).
inline StatusOr<Shape> ToShape(const int64_t* dims, int32_t rank) {
  if (rank < -1 || rank > kMaxRank) return InvalidArgument("rank ", rank, " is not between -1 and ", kMaxRank);
  if (rank > 0 && !dims) return InvalidArgument("dims are NULL at rank ", rank);
  for (int32_t i = 0; i < rank; ++i) {
    if (dims[i] < -1) return InvalidArgument("dim ", i, " is ", dims[i], "; use -1 for an unknown size");
  }
  return Shape(dims, rank);
}

}  // namespace thalweg
