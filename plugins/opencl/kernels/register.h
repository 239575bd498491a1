// One function per source file of kernels; plugin.cc calls all of them.
#ifndef THALWEG_PLUGINS_OPENCL_KERNELS_REGISTER_H_
#define THALWEG_PLUGINS_OPENCL_KERNELS_REGISTER_H_

#include "thalweg/cpp/plugin.hpp"

namespace thalweg::opencl {

void register_attention(tw::Plugin& p);
void register_batch_norm(tw::Plugin& p);
void register_conv(tw::Plugin& p);
void register_conv3d(tw::Plugin& p);
void register_copy(tw::Plugin& p);
void register_elementwise(tw::Plugin& p);
void register_gather(tw::Plugin& p);
void register_lstm_sequence(tw::Plugin& p);
void register_matmul(tw::Plugin& p);
void register_pool(tw::Plugin& p);
void register_random(tw::Plugin& p);
void register_recurrent(tw::Plugin& p);
void register_reduce(tw::Plugin& p);
void register_resize(tw::Plugin& p);
void register_scan(tw::Plugin& p);
void register_segment(tw::Plugin& p);
void register_softmax(tw::Plugin& p);
void register_special(tw::Plugin& p);
void register_sparse_segment(tw::Plugin& p);
void register_sparse_tensor_dense_matmul(tw::Plugin& p);
void register_top_k(tw::Plugin& p);
void register_unique(tw::Plugin& p);
void register_update(tw::Plugin& p);
void register_variable(tw::Plugin& p);
void register_views(tw::Plugin& p);

}  // namespace thalweg::opencl

#endif  // THALWEG_PLUGINS_OPENCL_KERNELS_REGISTER_H_
