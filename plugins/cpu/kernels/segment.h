// Rows that share a segment number become one row; the ops on sorted segments use this code.
// Segments are independent and take in their rows in order, with the loops of reduce.h. Sums are
// kept in double.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_SEGMENT_H_
#define THALWEG_PLUGINS_CPU_KERNELS_SEGMENT_H_

#include "kernels/common/element.h"
#include "kernels/reduce.h"

namespace thalweg::cpu {

// The result of a segment without rows: zeros, or the result of no elements (1 for products).
enum class Empty { kZero, kStart };
// The divisor of floating-point sums.
enum class Divisor { kNone, kCount, kRootOfCount };

struct SegmentReduction {
  const ReduceKernel* kernel;
  Empty empty = Empty::kZero;
  Divisor divisor = Divisor::kNone;  // REQUIRES: the accumulators are double, unless kNone
};

// Returns one more than the last number. Throws INVALID_ARGUMENT unless the numbers are a vector of
// `rows` elements, none negative and none smaller than the one before it. With a limit, each number
// must also be below the limit. limit: -1 for none.
int64_t CheckSegments(const tw_view* segment_ids, int64_t rows, int64_t limit = -1);

// y[s] = the reduction of the rows r with segment_ids[r] == s. Row r is row r of x, or row
// indices[r] if `indices` is given. y is allocated: `segments` rows with the shape of x's rows.
// REQUIRES: numbers and indices have been checked.
void ReduceSegments(const tw_frame* f, const SegmentReduction& reduction, const tw_view* x, const tw_view* indices,
                    const tw_view* segment_ids, const tw_view* y);

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_SEGMENT_H_
