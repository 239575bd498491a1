// The optional set "function" of the host table: plugin/function.h over the functions of the step's graph.
#pragma once
#include "thalweg/plugin/function.h"

namespace thalweg {

const tw_function_api* FunctionSet();

}  // namespace thalweg
