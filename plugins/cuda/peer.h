// Copies between two GPUs that bypass the host.
#ifndef THALWEG_PLUGINS_CUDA_PEER_H_
#define THALWEG_PLUGINS_CUDA_PEER_H_

#include "thalweg/cpp/plugin.hpp"

namespace thalweg::cuda {

extern const tw_peer_set kPeer;

}  // namespace thalweg::cuda

#endif  // THALWEG_PLUGINS_CUDA_PEER_H_
