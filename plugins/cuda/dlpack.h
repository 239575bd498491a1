// The exchange of this device's memory through DLPack: exported tensors, and imported memory of
// other libraries.
#ifndef THALWEG_PLUGINS_CUDA_DLPACK_H_
#define THALWEG_PLUGINS_CUDA_DLPACK_H_

#include "thalweg/cpp/plugin.hpp"

namespace thalweg::cuda {

extern const tw_dlpack_set kDlpack;

}  // namespace thalweg::cuda

#endif  // THALWEG_PLUGINS_CUDA_DLPACK_H_
