// The graph compiler of plugins/opencl for devices of kind CUDA. It fuses chains of element-wise
// nodes into one function, which NVRTC compiles.
#ifndef THALWEG_PLUGINS_CUDA_KERNELS_FUSING_H_
#define THALWEG_PLUGINS_CUDA_KERNELS_FUSING_H_

#include "thalweg/cpp/plugin.hpp"

namespace thalweg::cuda {

void RegisterFuse(const tw_host* host, tw_registrar* to);

}  // namespace thalweg::cuda

#endif  // THALWEG_PLUGINS_CUDA_KERNELS_FUSING_H_
