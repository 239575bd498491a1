// The optional set "host_function" of the host table: implements plugin/host_function.h with the
// functions that the program has registered in the runtime.
#pragma once
#include "thalweg/plugin/host_function.h"

namespace thalweg {

const tw_host_function_api* HostFunctionSet();

}  // namespace thalweg
