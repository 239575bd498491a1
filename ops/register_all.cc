// The plugin org.thalweg.ops: all standard ops. Order does not matter; it follows the folders.
#include "ops/register.h"

TW_CPP_PLUGIN("org.thalweg.ops", "0.1.0", p) {
  using namespace thalweg::ops;

  register_broadcast(p);
  register_cast(p);
  register_concat(p);
  register_const(p);
  register_fill(p);
  register_gather(p);
  register_gather_nd(p);
  register_identity(p);
  register_one_hot(p);
  register_pack(p);
  register_pad(p);
  register_range(p);
  register_reshape(p);
  register_select(p);
  register_shape(p);
  register_slice(p);
  register_split(p);
  register_strided_slice(p);
  register_tile(p);
  register_transpose(p);
  register_where(p);

  register_add_n(p);
  register_arg_reduce(p);
  register_batch_matmul(p);
  register_binary(p);
  register_compare(p);
  register_cumsum(p);
  register_l2_loss(p);
  register_matmul(p);
  register_reduce(p);
  register_segment_sum(p);
  register_unary(p);
  register_unary_grad(p);

  register_bias_add(p);
  register_conv2d(p);
  register_cross_entropy(p);
  register_pool(p);
  register_relu(p);
  register_softmax(p);

  register_random(p);

  register_resource_gather(p);
  register_resource_scatter(p);
  register_variable(p);

  register_apply_ada_max(p);
  register_apply_adadelta(p);
  register_apply_adagrad(p);
  register_apply_adam(p);
  register_apply_ftrl(p);
  register_apply_gradient_descent(p);
  register_apply_momentum(p);
  register_apply_rmsprop(p);

  register_checkpoint(p);
  register_strings(p);

  register_assert(p);
  register_no_op(p);
  register_send_recv(p);
}
