// Registers the CPU as a device: host memory, no streams. See device.cc.
#ifndef THALWEG_PLUGINS_CPU_DEVICE_H_
#define THALWEG_PLUGINS_CPU_DEVICE_H_

#include "thalweg/cpp/plugin.hpp"

namespace thalweg::cpu {

void register_device(tw::Plugin& p);

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_DEVICE_H_
