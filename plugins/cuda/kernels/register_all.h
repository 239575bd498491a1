// Registers the kernels of plugins/opencl for devices of kind CUDA and the element types that the
// plugin is built for.
#ifndef THALWEG_PLUGINS_CUDA_KERNELS_REGISTER_ALL_H_
#define THALWEG_PLUGINS_CUDA_KERNELS_REGISTER_ALL_H_

#include "thalweg/cpp/plugin.hpp"

namespace thalweg::cuda {

void RegisterKernels(const tw_host* host, tw_registrar* to);

}  // namespace thalweg::cuda

#endif  // THALWEG_PLUGINS_CUDA_KERNELS_REGISTER_ALL_H_
