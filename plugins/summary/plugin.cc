// The plugin's registration.
#include "thalweg/cpp/plugin.hpp"

#include "register.h"

TW_CPP_PLUGIN("org.thalweg.summary", "0.1.0", p) {
  thalweg::summary::register_summaries(p);
  thalweg::summary::register_writer(p);
}
