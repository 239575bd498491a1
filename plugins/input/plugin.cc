// The plugin's registration.
#include "register.h"
#include "thalweg/cpp/plugin.hpp"

TW_CPP_PLUGIN("org.thalweg.input", "0.1.0", p) { thalweg::input::register_images(p); }
