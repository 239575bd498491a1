#include "ops/common/axis_range.h"

namespace thalweg::ops {

MaybeDims RangeShape(const tw::Shape& s, uint32_t input, uint32_t min, uint32_t max, const RangeNames& names) {
  const int64_t axis = s.i("axis");
  const std::string name = names.input;
  if (axis < -1) Fail("'axis' is " + tw::text(axis) + "; it must be an axis of '" + name + "', or -1 for one range for all elements");
  if (axis == -1) {
    WantScalar(s, min, names.min);
    WantScalar(s, max, names.max);
    return Dims{};
  }
  int64_t slices = -1;
  if (s.known(input)) {
    if (axis >= s.rank(input))
      Fail("'axis' is " + tw::text(axis) + ", and '" + name + "' is " + tw::text(s.in(input)) + "; it has fewer axes");
    slices = s.dim(input, int32_t(axis));
  }
  for (const auto& [i, range] : {std::pair{min, names.min}, std::pair{max, names.max}}) {
    WantVector(s, i, range);
    if (s.known(i))
      slices = MergeSize(s, slices, s.dim(i, 0), "axis " + tw::text(axis) + " of '" + name + "' and the entries of '" + range + "'");
  }
  return Dims{slices};
}

}  // namespace thalweg::ops
