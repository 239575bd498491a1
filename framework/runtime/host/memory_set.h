// The optional set "memory" of the host table: implements plugin/memory.h with the budget of the
// step.
#pragma once
#include "thalweg/plugin/memory.h"

namespace thalweg {

const tw_memory_api* MemorySet();

}  // namespace thalweg
