// How tensors of common axes are walked: the arguments of walk.h's kind, made from dims and steps on the host.
#ifndef THALWEG_PLUGINS_OPENCL_KERNELS_LAYOUT_H_
#define THALWEG_PLUGINS_OPENCL_KERNELS_LAYOUT_H_

#include "kernels/kernel.h"

namespace thalweg::opencl {

using Size = cl_long;
#define FUNCTION inline
#include "walk.h"
#undef FUNCTION

int64_t Count(const Dims& dims);
// Of a dense tensor.
Dims DenseSteps(const Dims& dims);
bool Broadcasts(const Dims& dims, const Dims& to);
// Of a tensor whose dims broadcast to `to`; others are refused.
Dims BroadcastSteps(const Dims& dims, const Dims& to);

// Axes that several tensors share, outermost first, with a list of steps for each tensor; without those of size 1, neighbours merged where
// all tensors allow it. The innermost one stands apart. Throws where more are left than kernels can walk.
struct Layout {
  Layout(const Dims& dims, const std::vector<Dims>& steps);
  // Puts the innermost axis in front of the others, for a function that does not walk it itself.
  void PushInner();
  Size inner = 1;
  Axes axes{};
  std::vector<Steps> steps;
  std::vector<Size> by;  // the steps along the innermost axis; 0 where there is none
};

}  // namespace thalweg::opencl

#endif  // THALWEG_PLUGINS_OPENCL_KERNELS_LAYOUT_H_
