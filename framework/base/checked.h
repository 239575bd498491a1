// Size arithmetic with overflow checks, and shapes in messages. Every product of dims and byte sizes
// is computed here.
// Threads: any.
#pragma once
#include <cstdint>
#include <string>

#include "framework/base/status.h"

namespace thalweg {

// Both return false if the result does not fit.
inline bool CheckedMul(int64_t a, int64_t b, int64_t* out) { return !__builtin_mul_overflow(a, b, out); }
inline bool CheckedAdd(int64_t a, int64_t b, int64_t* out) { return !__builtin_add_overflow(a, b, out); }

// Formats "[2, ?, 3]", or "unknown" for rank -1.
std::string ShapeText(const int64_t* dims, int32_t rank);
// Returns the number of elements of a fully known shape. INVALID_ARGUMENT for a negative dim or
// more than 2^63-1 elements.
StatusOr<int64_t> CountElements(const int64_t* dims, int32_t rank);
// Returns the size of the elements in bytes, with the same errors. INVALID_ARGUMENT for an unknown
// dtype.
StatusOr<int64_t> CountBytes(const int64_t* dims, int32_t rank, uint32_t dtype);

}  // namespace thalweg
