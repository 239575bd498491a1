// Passes registrations of plugins/opencl on to a host, under this plugin's kind of device. The
// caller names the function that receives them: Renamed(to, &Renamed::Receive<tw_kernel_def, AddKernel>).
#ifndef THALWEG_PLUGINS_CUDA_KERNELS_RENAMED_H_
#define THALWEG_PLUGINS_CUDA_KERNELS_RENAMED_H_

#include "thalweg/cpp/plugin.hpp"

namespace thalweg::cuda {

struct Renamed {
  Renamed(tw_registrar* t, tw_status* (*role)(tw_registrar*, const tw_role*)) : to(t) {
    registrar.size = sizeof registrar;
    registrar.role = role;
  }
  // Returns the host's registrar for the entry that was called with r.
  static tw_registrar* Receiver(tw_registrar* r) { return reinterpret_cast<Renamed*>(r)->to; }

  // Passes the definition of a role to `add`.
  template <class Def, tw_status* (*add)(tw_registrar*, const Def*)>
  static tw_status* Receive(tw_registrar* r, const tw_role* d) {
    return add(r, static_cast<const Def*>(d->definition));
  }

  tw_registrar registrar{};  // must be first: entries are called with its address
  tw_registrar* to;
};

}  // namespace thalweg::cuda

#endif  // THALWEG_PLUGINS_CUDA_KERNELS_RENAMED_H_
