// What the plugin registers: the device, then the kernels of every file, by name.
#include "thalweg/cpp/plugin.hpp"

#include "device.h"
#include "kernels/register.h"

TW_CPP_PLUGIN("org.thalweg.cpu", "0.1.0", p) {
  using namespace thalweg::cpu;
  register_device(p);

  register_broadcast_to(p);
  register_cast(p);
  register_concat(p);
  register_fill(p);
  register_forward(p);
  register_gather(p);
  register_one_hot(p);
  register_pad(p);
  register_range(p);
  register_scatter_nd(p);
  register_select(p);
  register_shape(p);
  register_slice(p);
  register_split(p);
  register_tile(p);
  register_transpose(p);
  register_where(p);

  register_add_n(p);
  register_arg_reduce(p);
  register_binary(p);
  register_compare(p);
  register_cumsum(p);
  register_reduce(p);
  register_segment_sum(p);
  register_unary(p);

  register_bias(p);
  register_conv2d(p);
  register_conv2d_backprop(p);
  register_conv2d_int32(p);
  register_cross_entropy(p);
  register_matmul(p);
  register_pool(p);
  register_random(p);
  register_relu(p);
  register_softmax(p);

  register_apply_adadelta(p);
  register_apply_adagrad(p);
  register_apply_adam(p);
  register_apply_ftrl(p);
  register_apply_gradient_descent(p);
  register_apply_momentum(p);
  register_apply_rmsprop(p);

  register_checkpoint(p);
  register_control(p);
  register_resource_gather(p);
  register_resource_scatter(p);
  register_strings(p);
  register_variable(p);
}
