// What callers say of memory and shapes, checked.
#pragma once
#include <cstdint>

#include "framework/base/dtype.h"
#include "framework/base/status.h"
#include "framework/tensor/tensor.h"

namespace thalweg {

// A shape that may be unknown in part (-1) or in whole (rank -1).
inline StatusOr<Shape> ToShape(const int64_t* dims, int32_t rank) {
  if (rank < -1 || rank > kMaxRank) return InvalidArgument("rank ", rank, " is not between -1 and ", kMaxRank);
  if (rank > 0 && !dims) return InvalidArgument("dims are NULL at rank ", rank);
  for (int32_t i = 0; i < rank; ++i) {
    if (dims[i] < -1) return InvalidArgument("dim ", i, " is ", dims[i], "; use -1 for an unknown size");
  }
  return Shape(dims, rank);
}

// What the address of an element must be a multiple of. Of a complex number: what that of its parts must be.
inline uint32_t AlignmentOf(uint32_t dtype) {
  const uint32_t size = DTypeBytes(dtype);
  return dtype == TW_COMPLEX64 || dtype == TW_COMPLEX128 ? size / 2 : size;
}

}  // namespace thalweg
