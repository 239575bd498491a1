// Fold: the sum, product, least, largest or mean of the values of all members, element by element, in
// the order of their ranks. Half and bfloat16 are computed in float and rounded once. Threads: any.
#ifndef THALWEG_PLUGINS_COMMON_FOLD_H_
#define THALWEG_PLUGINS_COMMON_FOLD_H_

#include <cstdint>

namespace thalweg::common {

// Returns the bytes of an element; 0 if the type cannot be reduced.
uint64_t FoldedBytes(uint32_t dtype);
// Returns true if the operation is there for the type: a mean only for floats.
bool CanFold(uint32_t dtype, uint32_t how);
// in: `n` pointers to `count` elements. out: not one of them. REQUIRES: CanFold(dtype, how), n > 0.
void Fold(uint32_t dtype, uint32_t how, const char* const* in, uint32_t n, uint64_t count, char* out);

// For sums that are folded in several steps:
// Divides the elements as a mean of `by` members does. REQUIRES: float or double.
void DivideBy(uint32_t dtype, uint32_t by, uint64_t count, char* values);
// Returns true if values of the type are folded in float: half and bfloat16.
bool IsShort(uint32_t dtype);
// REQUIRES: IsShort(dtype).
void ToFloats(uint32_t dtype, const char* in, uint64_t count, float* out);
void FromFloats(uint32_t dtype, const float* in, uint64_t count, char* out);

}  // namespace thalweg::common

#endif  // THALWEG_PLUGINS_COMMON_FOLD_H_
