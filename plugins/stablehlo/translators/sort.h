// The order of keys. Threads: those of Translation.
#pragma once
#include "common.h"

namespace thalweg::stablehlo {

// Indices (int32) that bring integers of the last axis into ascending order; equal ones keep theirs.
Value AscendingOrder(Translation& t, const Value& keys);

}  // namespace thalweg::stablehlo
