// How kernels iterate over tensors with common axes: makes the arguments for walk.h from dims and
// steps on the host.
#ifndef THALWEG_PLUGINS_OPENCL_KERNELS_LAYOUT_H_
#define THALWEG_PLUGINS_OPENCL_KERNELS_LAYOUT_H_

#include "kernels/kernel.h"

namespace thalweg::opencl {

using Size = cl_long;
#define FUNCTION inline
#include "walk.h"
#undef FUNCTION

int64_t Count(const Dims& dims);
// The steps of a dense tensor.
Dims DenseSteps(const Dims& dims);
bool Broadcasts(const Dims& dims, const Dims& to);
// The steps of a tensor whose dims broadcast to `to`; throws if they do not.
Dims BroadcastSteps(const Dims& dims, const Dims& to);

// Axes that several tensors share, outermost first, with a list of steps for each tensor. Axes of
// size 1 are dropped, and neighbours are merged if all tensors allow it. The innermost axis is
// separate. Throws if more axes are left than kernels support.
struct Layout {
  Layout(const Dims& dims, const std::vector<Dims>& steps);
  // Puts the innermost axis in front of the others, for a function that does not iterate over it
  // itself.
  void PushInner();
  Size inner = 1;
  Axes axes{};
  std::vector<Steps> steps;
  std::vector<Size> by;  // steps along the innermost axis; 0 if there is none
};

}  // namespace thalweg::opencl

#endif  // THALWEG_PLUGINS_OPENCL_KERNELS_LAYOUT_H_
