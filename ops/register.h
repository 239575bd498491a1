// What every file of ops includes: the registration of ops. A file <family>/<name>.cc that files.inc
// lists defines void register_<name>(tw::Plugin& p). register_all.cc declares these functions, and
// not this header: a new file then recompiles no other.
#pragma once
#include "thalweg/cpp/plugin.hpp"

namespace thalweg::ops {

// array
void register_bitcast(tw::Plugin& p);
void register_broadcast(tw::Plugin& p);
void register_cast(tw::Plugin& p);
void register_concat(tw::Plugin& p);
void register_const(tw::Plugin& p);
void register_dynamic_partition(tw::Plugin& p);
void register_fill(tw::Plugin& p);
void register_gather(tw::Plugin& p);
void register_gather_nd(tw::Plugin& p);
void register_identity(tw::Plugin& p);
void register_lin_space(tw::Plugin& p);
void register_matrix_diag(tw::Plugin& p);
void register_one_hot(tw::Plugin& p);
void register_pack(tw::Plugin& p);
void register_pad(tw::Plugin& p);
void register_range(tw::Plugin& p);
void register_reshape(tw::Plugin& p);
void register_reverse(tw::Plugin& p);
void register_reverse_sequence(tw::Plugin& p);
void register_roll(tw::Plugin& p);
void register_select(tw::Plugin& p);
void register_shape(tw::Plugin& p);
void register_slice(tw::Plugin& p);
void register_space_to_depth(tw::Plugin& p);
void register_sparse_reorder(tw::Plugin& p);
void register_sparse_to_dense(tw::Plugin& p);
void register_split(tw::Plugin& p);
void register_strided_slice(tw::Plugin& p);
void register_tensor_scatter(tw::Plugin& p);
void register_tile(tw::Plugin& p);
void register_transpose(tw::Plugin& p);
void register_lookup_table(tw::Plugin& p);
void register_data_decode(tw::Plugin& p);
void register_data_image(tw::Plugin& p);
void register_data_iterator(tw::Plugin& p);
void register_data_parse_example(tw::Plugin& p);
void register_data_source(tw::Plugin& p);
void register_data_transform(tw::Plugin& p);
void register_accumulator(tw::Plugin& p);
void register_barrier(tw::Plugin& p);
void register_mutex(tw::Plugin& p);
void register_staging(tw::Plugin& p);
void register_map_staging(tw::Plugin& p);
void register_queue(tw::Plugin& p);
void register_stack(tw::Plugin& p);
void register_tensor_array(tw::Plugin& p);
void register_tensor_list(tw::Plugin& p);
void register_unique(tw::Plugin& p);
void register_where(tw::Plugin& p);

// math
void register_add_n(tw::Plugin& p);
void register_approximate_equal(tw::Plugin& p);
void register_arg_reduce(tw::Plugin& p);
void register_atan2(tw::Plugin& p);
void register_batch_matmul(tw::Plugin& p);
void register_binary(tw::Plugin& p);
void register_bincount(tw::Plugin& p);
void register_bitwise(tw::Plugin& p);
void register_bucketize(tw::Plugin& p);
void register_clip_by_value(tw::Plugin& p);
void register_compare(tw::Plugin& p);
void register_complex(tw::Plugin& p);
void register_cumsum(tw::Plugin& p);
void register_einsum(tw::Plugin& p);
void register_gamma(tw::Plugin& p);
void register_l2_loss(tw::Plugin& p);
void register_matmul(tw::Plugin& p);
void register_no_nan(tw::Plugin& p);
void register_nth_element(tw::Plugin& p);
void register_reduce(tw::Plugin& p);
void register_segment(tw::Plugin& p);
void register_segment_sum(tw::Plugin& p);
void register_sparse_segment(tw::Plugin& p);
void register_sparse_tensor_dense_matmul(tw::Plugin& p);
void register_top_k(tw::Plugin& p);
void register_trigonometry(tw::Plugin& p);
void register_truncate(tw::Plugin& p);
void register_unary(tw::Plugin& p);
void register_unary_grad(tw::Plugin& p);

// nn
void register_activations(tw::Plugin& p);
void register_attention(tw::Plugin& p);
void register_bias_add(tw::Plugin& p);
void register_conv2d(tw::Plugin& p);
void register_conv3d(tw::Plugin& p);
void register_cross_entropy(tw::Plugin& p);
void register_depthwise_conv2d(tw::Plugin& p);
void register_fused_batch_norm(tw::Plugin& p);
void register_gru(tw::Plugin& p);
void register_lrn(tw::Plugin& p);
void register_lstm(tw::Plugin& p);
void register_pool(tw::Plugin& p);
void register_relu(tw::Plugin& p);
void register_resize(tw::Plugin& p);
void register_softmax(tw::Plugin& p);

// random
void register_candidate_sampler(tw::Plugin& p);
void register_multinomial(tw::Plugin& p);
void register_random(tw::Plugin& p);
void register_random_shuffle(tw::Plugin& p);
void register_stateless_random(tw::Plugin& p);
void register_stateless_seed(tw::Plugin& p);

// state
void register_resource_gather(tw::Plugin& p);
void register_resource_gather_nd(tw::Plugin& p);
void register_resource_scatter(tw::Plugin& p);
void register_resource_scatter_nd(tw::Plugin& p);
void register_saved_resource(tw::Plugin& p);
void register_variable(tw::Plugin& p);

// training
void register_apply_ada_max(tw::Plugin& p);
void register_apply_adadelta(tw::Plugin& p);
void register_apply_adagrad(tw::Plugin& p);
void register_apply_adam(tw::Plugin& p);
void register_apply_ftrl(tw::Plugin& p);
void register_apply_gradient_descent(tw::Plugin& p);
void register_apply_momentum(tw::Plugin& p);
void register_apply_rmsprop(tw::Plugin& p);

// io
void register_base64(tw::Plugin& p);
void register_checkpoint(tw::Plugin& p);
void register_decode_raw(tw::Plugin& p);
void register_files(tw::Plugin& p);
void register_print(tw::Plugin& p);
void register_regex(tw::Plugin& p);
void register_string_case(tw::Plugin& p);
void register_string_hash(tw::Plugin& p);
void register_string_split(tw::Plugin& p);
void register_string_to_number(tw::Plugin& p);
void register_strings(tw::Plugin& p);
void register_substr(tw::Plugin& p);

// control
void register_abort(tw::Plugin& p);
void register_assert(tw::Plugin& p);
void register_check_numerics(tw::Plugin& p);
void register_control_trigger(tw::Plugin& p);
void register_loop(tw::Plugin& p);
void register_no_op(tw::Plugin& p);
void register_send_recv(tw::Plugin& p);
void register_switch(tw::Plugin& p);

// functional
void register_call(tw::Plugin& p);
void register_if(tw::Plugin& p);
void register_while(tw::Plugin& p);

}  // namespace thalweg::ops
