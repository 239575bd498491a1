// The standard ops as a plugin that is linked into the library: what to list where static plugins are listed.
#pragma once
#include "thalweg/plugin/plugin.h"

extern "C" const tw_plugin* tw_plugin_query_v0_ops(const tw_host_info* host);
