// Gathering along an axis, for GatherV2 and ResourceGather.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_GATHER_H_
#define THALWEG_PLUGINS_CPU_KERNELS_GATHER_H_

#include "thalweg/cpp/plugin.hpp"

namespace thalweg::cpu {

// out = params[..., indices, ...] at `axis`. The first batch_dims axes of params and indices are
// shared.
// Throws INVALID_ARGUMENT for an index outside the axis, and for shapes that do not fit.
void GatherAlong(const tw_frame* f, const tw_view* params, const tw_view* indices, int axis, int batch_dims, const tw_view* out);

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_GATHER_H_
