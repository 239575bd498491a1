// Sorts updates by their target row, so that one task handles each row and applies its updates in
// order.
#ifndef THALWEG_PLUGINS_OPENCL_KERNELS_SEGMENTS_H_
#define THALWEG_PLUGINS_OPENCL_KERNELS_SEGMENTS_H_

#include "kernels/kernel.h"

namespace thalweg::opencl {

// See scatter.h of plugins/common/device.
struct Segments {
  // targets: the row of each update; negative ones are skipped.
  explicit Segments(const std::vector<int64_t>& targets);
  cl_long count() const { return cl_long(rows.size()); }
  std::vector<int64_t> order, rows, starts;
};

// Throws an error with the input's name if an index is outside [0, rows).
void CheckIndices(const std::vector<int64_t>& indices, int64_t rows, const char* name);

}  // namespace thalweg::opencl

#endif  // THALWEG_PLUGINS_OPENCL_KERNELS_SEGMENTS_H_
