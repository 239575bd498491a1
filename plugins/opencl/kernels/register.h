// One function per file of this folder: it registers that file's kernels.
#ifndef THALWEG_PLUGINS_OPENCL_KERNELS_REGISTER_H_
#define THALWEG_PLUGINS_OPENCL_KERNELS_REGISTER_H_

#include "thalweg/cpp/plugin.hpp"

namespace thalweg::opencl {

void register_elementwise(tw::Plugin& p);
void register_matmul(tw::Plugin& p);
void register_relu(tw::Plugin& p);

}  // namespace thalweg::opencl

#endif  // THALWEG_PLUGINS_OPENCL_KERNELS_REGISTER_H_
