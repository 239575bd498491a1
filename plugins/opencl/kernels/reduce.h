// Sums, products and extremes over any axes.
#ifndef THALWEG_PLUGINS_OPENCL_KERNELS_REDUCE_H_
#define THALWEG_PLUGINS_OPENCL_KERNELS_REDUCE_H_

#include "kernels/layout.h"

namespace thalweg::opencl {

// How elements are combined; see reduce.h of plugins/common/device.
struct Reduction {
  const char *first, *join, *take, *last;
};
extern const Reduction kSum, kMean, kProduct, kLargest, kSmallest, kAll, kAny, kHalfSquares, kNorm;

// C text for the least and the greatest value of an element type: LEAST and MOST of reduce.h.
std::string LeastText(const std::string& type);
std::string MostText(const std::string& type);

class Reduce {
 public:
  Reduce(const tw::Node& n, const Reduction& r, uint32_t from, uint32_t to);

  // y: the axes of x that are not reduced, dense.
  void Run(const tw_frame* f, const Dims& dims, const std::vector<bool>& reduced, Place x, Place y) const;

 private:
  // Runs `kernel` with the work of each output cut into `parts` parts; Run asks for several if
  // there are too few outputs to fill a device. rows: the kept elements are not consecutive.
  void Start(const tw_frame* f, const Kernel& kernel, bool rows, Layout kept, Layout taken, Size outputs, Size parts, Size count, Place x,
             Place y) const;

  LateKernel rows_, columns_;            // single pass
  LateKernel part_rows_, part_columns_;  // first pass: one result per part
  LateKernel join_;                      // second pass: joins the results of the parts
  uint32_t part_bytes_;
};

}  // namespace thalweg::opencl

#endif  // THALWEG_PLUGINS_OPENCL_KERNELS_REDUCE_H_
