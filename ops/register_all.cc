// The plugin org.thalweg.ops with all standard ops. Their order follows files.inc; it does not
// matter.
#include "ops/register.h"

TW_CPP_PLUGIN("org.thalweg.ops", "0.1.0", p) {
  using namespace thalweg::ops;

  register_bitcast(p);
  register_broadcast(p);
  register_cast(p);
  register_concat(p);
  register_const(p);
  register_dynamic_partition(p);
  register_fill(p);
  register_gather(p);
  register_gather_nd(p);
  register_identity(p);
  register_lin_space(p);
  register_matrix_diag(p);
  register_one_hot(p);
  register_pack(p);
  register_pad(p);
  register_range(p);
  register_reshape(p);
  register_reverse(p);
  register_reverse_sequence(p);
  register_roll(p);
  register_select(p);
  register_shape(p);
  register_slice(p);
  register_space_to_depth(p);
  register_sparse_reorder(p);
  register_sparse_to_dense(p);
  register_split(p);
  register_strided_slice(p);
  register_tensor_scatter(p);
  register_tile(p);
  register_transpose(p);
  register_lookup_table(p);
  register_data_decode(p);
  register_data_image(p);
  register_data_iterator(p);
  register_data_parse_example(p);
  register_data_source(p);
  register_data_transform(p);
  register_accumulator(p);
  register_barrier(p);
  register_mutex(p);
  register_staging(p);
  register_map_staging(p);
  register_queue(p);
  register_stack(p);
  register_tensor_array(p);
  register_tensor_list(p);
  register_unique(p);
  register_where(p);

  register_add_n(p);
  register_approximate_equal(p);
  register_arg_reduce(p);
  register_atan2(p);
  register_batch_matmul(p);
  register_binary(p);
  register_bincount(p);
  register_bitwise(p);
  register_bucketize(p);
  register_clip_by_value(p);
  register_compare(p);
  register_complex(p);
  register_cumsum(p);
  register_einsum(p);
  register_gamma(p);
  register_l2_loss(p);
  register_matmul(p);
  register_no_nan(p);
  register_nth_element(p);
  register_reduce(p);
  register_segment(p);
  register_segment_sum(p);
  register_sparse_segment(p);
  register_sparse_tensor_dense_matmul(p);
  register_top_k(p);
  register_trigonometry(p);
  register_truncate(p);
  register_unary(p);
  register_unary_grad(p);

  register_activations(p);
  register_attention(p);
  register_bias_add(p);
  register_conv2d(p);
  register_conv3d(p);
  register_cross_entropy(p);
  register_depthwise_conv2d(p);
  register_fused_batch_norm(p);
  register_gru(p);
  register_lrn(p);
  register_lstm(p);
  register_pool(p);
  register_relu(p);
  register_resize(p);
  register_softmax(p);

  register_candidate_sampler(p);
  register_multinomial(p);
  register_random(p);
  register_random_shuffle(p);
  register_stateless_random(p);
  register_stateless_seed(p);
namespace thalweg::ops {
#define OPS(family, name) void register_##name(tw::Plugin& p);
#include "ops/files.inc"
#undef OPS
}  // namespace thalweg::ops

TW_CPP_PLUGIN("org.thalweg.ops", "0.1.0", p) {
#define OPS(family, name) thalweg::ops::register_##name(p);
#include "ops/files.inc"
#undef OPS
}
