// Broadcasts and paddings that other families share. Threads: those of Translation.
#pragma once
#include <cstdint>
#include <vector>

#include "common.h"

namespace thalweg::stablehlo {

// Repeats `x` to these sizes: axis i of x becomes axis axes[i] of the result, as in stablehlo.broadcast_in_dim.
Value Broadcast(Translation& t, const Op& op, const Value& x, const std::vector<int64_t>& axes, const std::vector<Value>& sizes);
// Pads as stablehlo.pad does: negative paddings cut off, `interior` elements stand between neighbours. fill: a scalar.
Value Pad(Translation& t, const Value& x, const Value& fill, const std::vector<int64_t>& low, const std::vector<int64_t>& high,
          const std::vector<int64_t>& interior);

}  // namespace thalweg::stablehlo
