// The plugin of the standard ops, which is linked into the library. An embedder adds this function
// to its list of static plugins.
#pragma once
#include "thalweg/plugin/plugin.h"

extern "C" const tw_plugin* tw_plugin_query_v0_ops(const tw_host_info* host);
