// Hands what plugins/opencl registers on to a host, under this plugin's kind of device: the entry that is set gets what is registered.
#ifndef THALWEG_PLUGINS_CUDA_KERNELS_RENAMED_H_
#define THALWEG_PLUGINS_CUDA_KERNELS_RENAMED_H_

#include "thalweg/cpp/plugin.hpp"

namespace thalweg::cuda {

struct Renamed {
  explicit Renamed(tw_registrar* t) : to(t) { registrar.size = sizeof registrar; }
  // Whose entry was called with r.
  static tw_registrar* Receiver(tw_registrar* r) { return reinterpret_cast<Renamed*>(r)->to; }

  tw_registrar registrar{};  // first: what is registered comes with its address
  tw_registrar* to;
};

}  // namespace thalweg::cuda

#endif  // THALWEG_PLUGINS_CUDA_KERNELS_RENAMED_H_
