// The optional set "function" of the host table: implements plugin/function.h with the functions of
// the step's graph.
#pragma once
#include "thalweg/plugin/function.h"

namespace thalweg {

const tw_function_api* FunctionSet();

}  // namespace thalweg
