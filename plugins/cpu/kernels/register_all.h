// The functions that register kernels, one per file that files.inc lists. Kernel files do not include
// this header: a new file then recompiles no other.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_REGISTER_ALL_H_
#define THALWEG_PLUGINS_CPU_KERNELS_REGISTER_ALL_H_

#include "thalweg/cpp/plugin.hpp"

namespace thalweg::cpu {

#define KERNELS(name) void register_##name(tw::Plugin& p);
#include "kernels/files.inc"
#undef KERNELS

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_REGISTER_ALL_H_
