#include "kernels/conv2d.h"

#include "kernels/register.h"

namespace thalweg::cpu {

void register_conv2d(tw::Plugin& p) { p.kernel<Conv2D<float>, Conv2D<double>, Conv2D<half>, Conv2D<bfloat16>>("Conv2D @CPU"); }

}  // namespace thalweg::cpu
