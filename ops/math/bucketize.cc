// Bucketize finds the two boundaries between which each element lies.
#include <cmath>

#include "ops/common/shape.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

void Rule(const tw::Shape& s) {
  const tw_attr& list = s.at("boundaries");
  auto* boundaries = static_cast<const double*>(list.data);
  for (uint32_t i = 0; i < list.count; ++i) {
    const bool rises = i == 0 || boundaries[i - 1] <= boundaries[i];
    if (!rises || boundaries[i] != boundaries[i])
      Fail("'boundaries' must be sorted, but number " + std::to_string(i) + " is " + Text(boundaries[i]) +
           (i ? " after " + Text(boundaries[i - 1]) : ""));
  }
  Set(s, 0, In(s, 0));
}

}  // namespace

void register_bucketize(tw::Plugin& p) {
  p.op<nullptr, Rule>(
      "Bucketize(input: T) -> (output: int32); T: {int32, int64, float, double}; boundaries: list(float); "
      "no_gradient \"an index has no derivative\"; doc \"how many of the sorted boundaries are not above each element; all, of NaN\"");
}

}  // namespace thalweg::ops
