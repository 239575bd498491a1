// The graph compiler that fuses chains of element-wise nodes into one function.
#ifndef THALWEG_PLUGINS_OPENCL_KERNELS_FUSE_H_
#define THALWEG_PLUGINS_OPENCL_KERNELS_FUSE_H_

#include "thalweg/cpp/plugin.hpp"

namespace thalweg::opencl {

void register_fuse(tw::Plugin& p);

}  // namespace thalweg::opencl

#endif  // THALWEG_PLUGINS_OPENCL_KERNELS_FUSE_H_
