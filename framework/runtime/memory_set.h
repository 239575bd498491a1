// The optional set "memory" of the host table: plugin/memory.h over the budget of the step.
#pragma once
#include "thalweg/plugin/memory.h"

namespace thalweg {

const tw_memory_api* MemorySet();

}  // namespace thalweg
