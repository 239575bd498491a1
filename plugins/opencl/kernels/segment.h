// Reduces rows by segment. Segment numbers are read and checked on the host.
#ifndef THALWEG_PLUGINS_OPENCL_KERNELS_SEGMENT_H_
#define THALWEG_PLUGINS_OPENCL_KERNELS_SEGMENT_H_

#include "kernels/reduce.h"

namespace thalweg::opencl {

// The rows of each segment, in their original order: segment s has order[starts[s]] up to
// order[starts[s + 1]], exclusive.
struct Members {
  // ids: the segment of each row; negative ones are skipped.
  Members(const std::vector<int64_t>& ids, int64_t segments);
  std::vector<int64_t> order, starts;
};

// The value of a segment without rows.
enum Alone { kZero, kOne, kLowest, kHighest };

// Reads a host vector.
std::vector<int64_t> Numbers(const tw_view* v);
// Throws if segment numbers are negative or decrease.
void CheckSorted(const std::vector<int64_t>& ids);
// Allocates the frame's first output with these dims.
void Allocate(const tw_frame* f, const Dims& dims);

class SegmentKernel {
 public:
  SegmentKernel(const tw::Node& n, const Reduction& r, Alone alone);
  // Computes the first output, of these dims, from the rows of the first input.
  void Run(const tw_frame* f, const Dims& dims, const Members& members) const;

 private:
  Kernel kernel_;
};

}  // namespace thalweg::opencl

#endif  // THALWEG_PLUGINS_OPENCL_KERNELS_SEGMENT_H_
