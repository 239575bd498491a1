// The range of an op that quantises: one for the whole tensor (attribute `axis` is -1), or one for
// each slice along an axis. For shape callbacks only.
#pragma once
#include "ops/common/shape.h"

namespace thalweg::ops {

struct RangeNames {
  const char *input, *min, *max;
};

// Checks inputs `min` and `max` against the attribute `axis` and input `input`, and returns their
// shape: [], or the size of the axis.
MaybeDims RangeShape(const tw::Shape& s, uint32_t input, uint32_t min, uint32_t max, const RangeNames& names);

}  // namespace thalweg::ops
