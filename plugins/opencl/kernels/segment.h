// Rows that are reduced by segment; the numbers of segments are read, and checked, on the host.
#ifndef THALWEG_PLUGINS_OPENCL_KERNELS_SEGMENT_H_
#define THALWEG_PLUGINS_OPENCL_KERNELS_SEGMENT_H_

#include "kernels/reduce.h"

namespace thalweg::opencl {

// The rows of each segment, in their own order: those of segment s are order[starts[s]] up to order[starts[s + 1]].
struct Members {
  // ids: the segment of each row; negative ones are left out.
  Members(const std::vector<int64_t>& ids, int64_t segments);
  std::vector<int64_t> order, starts;
};

// What a segment without rows is.
enum Alone { kZero, kOne, kLowest, kHighest };

// A vector of the host.
std::vector<int64_t> Numbers(const tw_view* v);
// Refuses numbers of segments that are negative or decrease.
void CheckSorted(const std::vector<int64_t>& ids);
// The frame's first output of these dims.
void Allocate(const tw_frame* f, const Dims& dims);

class SegmentKernel {
 public:
  SegmentKernel(const tw::Node& n, const Reduction& r, Alone alone);
  // The first output, of these dims, from the rows of the first input.
  void Run(const tw_frame* f, const Dims& dims, const Members& members) const;

 private:
  Kernel kernel_;
};

}  // namespace thalweg::opencl

#endif  // THALWEG_PLUGINS_OPENCL_KERNELS_SEGMENT_H_
