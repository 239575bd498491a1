// Places of elements in row-major order. Threads: those of Translation.
#pragma once
#include <vector>

#include "common.h"

namespace thalweg::stablehlo {

// The row-major numbers of the elements at these indices: at[i] holds indices of axis i (int64; all broadcast), sizes[i] is its size.
// REQUIRES: there is an axis.
Value Place(Translation& t, const std::vector<Value>& at, const std::vector<Value>& sizes);

}  // namespace thalweg::stablehlo
