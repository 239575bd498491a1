// What every file of ops includes: the registration of ops. A file <family>/<name>.cc that files.inc
// lists defines void register_<name>(tw::Plugin& p). register_all.cc declares these functions, and
// not this header: a new file then recompiles no other.
#pragma once
#include "thalweg/cpp/plugin.hpp"
