// What DLPack is told of this device's memory, and memory of others that it uses.
#ifndef THALWEG_PLUGINS_CUDA_DLPACK_H_
#define THALWEG_PLUGINS_CUDA_DLPACK_H_

#include "thalweg/cpp/plugin.hpp"

namespace thalweg::cuda {

extern const tw_dlpack_set kDlpack;

}  // namespace thalweg::cuda

#endif  // THALWEG_PLUGINS_CUDA_DLPACK_H_
