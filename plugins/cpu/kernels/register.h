// What every kernel file includes: the registration of kernels. A file <name>.cc that files.inc lists
// defines void register_<name>(tw::Plugin& p). register_all.h declares these functions,
// and not this header: a new file then recompiles no other.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_REGISTER_H_
#define THALWEG_PLUGINS_CPU_KERNELS_REGISTER_H_

#include "thalweg/cpp/plugin.hpp"

#endif  // THALWEG_PLUGINS_CPU_KERNELS_REGISTER_H_
