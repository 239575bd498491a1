#include "kernels/conv2d_backprop.h"

#include "kernels/register.h"

namespace thalweg::cpu {

void register_conv2d_backprop(tw::Plugin& p) {
  p.kernel<Conv2DBackpropInput<float>, Conv2DBackpropInput<double>, Conv2DBackpropInput<half>, Conv2DBackpropInput<bfloat16>>(
      "Conv2DBackpropInput @CPU");
  p.kernel<Conv2DBackpropFilter<float>, Conv2DBackpropFilter<double>, Conv2DBackpropFilter<half>, Conv2DBackpropFilter<bfloat16>>(
      "Conv2DBackpropFilter @CPU");
}

}  // namespace thalweg::cpu
