// The plugin's registration.
#include "thalweg/cpp/plugin.hpp"

#include "register.h"

TW_CPP_PLUGIN("org.thalweg.input", "0.1.0", p) {
  thalweg::input::register_flac(p);
  thalweg::input::register_images(p);
}
