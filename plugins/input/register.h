// One function per source file with kernels; each adds them to the plugin.
#ifndef THALWEG_PLUGINS_INPUT_REGISTER_H_
#define THALWEG_PLUGINS_INPUT_REGISTER_H_

#include "thalweg/cpp/plugin.hpp"

namespace thalweg::input {

void register_flac(tw::Plugin& p);
void register_images(tw::Plugin& p);

}  // namespace thalweg::input

#endif  // THALWEG_PLUGINS_INPUT_REGISTER_H_
