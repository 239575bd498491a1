// Rows that share a segment number become one row: what the ops on sorted segments have in common. Segments are independent of each other
// and take in their rows in order, on the loops of reduce.h; sums are kept in double.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_SEGMENT_H_
#define THALWEG_PLUGINS_CPU_KERNELS_SEGMENT_H_

#include "kernels/common/element.h"
#include "kernels/reduce.h"

namespace thalweg::cpu {

// What a segment without rows gives: zeros, or the result of no elements (1 of products).
enum class Empty { kZero, kStart };
// What sums of floating-point numbers are divided by.
enum class Divisor { kNone, kCount, kRootOfCount };

struct SegmentReduction {
  const ReduceKernel* kernel;
  Empty empty = Empty::kZero;
  Divisor divisor = Divisor::kNone;  // REQUIRES: the accumulators are double, unless kNone
};

// One more than the last number. Throws INVALID_ARGUMENT unless the numbers are a vector of `rows`, none negative, none smaller than the
// one before it, and, where there is a limit, none as large as that. limit: -1 for none.
int64_t CheckSegments(const tw_view* segment_ids, int64_t rows, int64_t limit = -1);

// y[s] = the rows r with segment_ids[r] == s, reduced. The row r is row r of x, or row indices[r] where indices are given. y is allocated:
// `segments` rows of the shape of those of x. REQUIRES: checked numbers and indices.
void ReduceSegments(const tw_frame* f, const SegmentReduction& reduction, const tw_view* x, const tw_view* indices,
                    const tw_view* segment_ids, const tw_view* y);

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_SEGMENT_H_
