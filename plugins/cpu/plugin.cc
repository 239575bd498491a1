// The plugin's registration: the device, fusion, then the kernels of every file in alphabetical
// order.
#include "thalweg/cpp/plugin.hpp"

#include "device.h"
#include "fuse/fuse.h"
#include "kernels/register_all.h"

TW_CPP_PLUGIN_WITH("org.thalweg.cpu", "0.1.0", thalweg::cpu::Fusion, p, fusion) {
  using namespace thalweg::cpu;
  register_device(p);
  fusion.Register(p);

#define KERNELS(name) register_##name(p);
#include "kernels/files.inc"
#undef KERNELS
}
