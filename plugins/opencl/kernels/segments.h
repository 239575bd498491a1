// Updates sorted by the row that they go to, so that each row is one task of a device and sees its updates in order.
#ifndef THALWEG_PLUGINS_OPENCL_KERNELS_SEGMENTS_H_
#define THALWEG_PLUGINS_OPENCL_KERNELS_SEGMENTS_H_

#include "kernels/kernel.h"

namespace thalweg::opencl {

// See scatter.h of plugins/common/device.
struct Segments {
  // targets: the row of each update; negative ones are left out.
  explicit Segments(const std::vector<int64_t>& targets);
  cl_long count() const { return cl_long(rows.size()); }
  std::vector<int64_t> order, rows, starts;
};

// Refuses an index outside of [0, rows) by name.
void CheckIndices(const std::vector<int64_t>& indices, int64_t rows, const char* name);

}  // namespace thalweg::opencl

#endif  // THALWEG_PLUGINS_OPENCL_KERNELS_SEGMENTS_H_
