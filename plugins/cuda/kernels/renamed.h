// Passes registrations of plugins/opencl on to a host, under this plugin's kind of device. The
// caller sets the entry that receives them.
#ifndef THALWEG_PLUGINS_CUDA_KERNELS_RENAMED_H_
#define THALWEG_PLUGINS_CUDA_KERNELS_RENAMED_H_

#include "thalweg/cpp/plugin.hpp"

namespace thalweg::cuda {

struct Renamed {
  explicit Renamed(tw_registrar* t) : to(t) { registrar.size = sizeof registrar; }
  // Returns the host's registrar for the entry that was called with r.
  static tw_registrar* Receiver(tw_registrar* r) { return reinterpret_cast<Renamed*>(r)->to; }

  tw_registrar registrar{};  // must be first: entries are called with its address
  tw_registrar* to;
};

}  // namespace thalweg::cuda

#endif  // THALWEG_PLUGINS_CUDA_KERNELS_RENAMED_H_
