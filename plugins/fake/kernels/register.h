// One function per file of kernels; plugin.cc calls them all.
#ifndef THALWEG_PLUGINS_FAKE_KERNELS_REGISTER_H_
#define THALWEG_PLUGINS_FAKE_KERNELS_REGISTER_H_

#include "thalweg/cpp/plugin.hpp"

namespace thalweg::fake {

void register_elementwise(tw::Plugin& p);
void register_matmul(tw::Plugin& p);
void register_sum(tw::Plugin& p);
void register_variable(tw::Plugin& p);
void register_views(tw::Plugin& p);

}  // namespace thalweg::fake

#endif  // THALWEG_PLUGINS_FAKE_KERNELS_REGISTER_H_
