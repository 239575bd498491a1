// Size arithmetic that cannot overflow silently: every product of dims and bytes goes through here.
#pragma once
#include <cstdint>

#include "framework/base/status.h"

namespace thalweg {

// False if the result does not fit.
inline bool CheckedMul(int64_t a, int64_t b, int64_t* out) { return !__builtin_mul_overflow(a, b, out); }
inline bool CheckedAdd(int64_t a, int64_t b, int64_t* out) { return !__builtin_add_overflow(a, b, out); }

// Elements of a fully known shape. INVALID_ARGUMENT for a negative dim or more than 2^63-1 elements.
StatusOr<int64_t> CountElements(const int64_t* dims, int32_t rank);
// The same in bytes.
StatusOr<int64_t> CountBytes(const int64_t* dims, int32_t rank, uint32_t dtype);

}  // namespace thalweg
