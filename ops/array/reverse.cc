// ReverseV2 reverses the order of elements along some axes.
#include "ops/common/shape.h"
#include "ops/common/types.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

void Rule(const tw::Shape& s) {
  WantVector(s, 1, "axis");
  Set(s, 0, In(s, 0));
  Dims axes;
  if (!s.known(0) || !s.value(1, &axes)) return;
  std::vector<bool> seen(static_cast<size_t>(s.rank(0)), false);
  for (int64_t axis : axes) {
    const size_t k = static_cast<size_t>(Axis(axis, s.rank(0), "axis"));
    if (seen[k]) Fail("'axis' is " + Text(axes) + ", which names axis " + std::to_string(k) + " twice");
    seen[k] = true;
  }
}

void Gradient(const tw::Grad& g) { g.dx(0, g.op("ReverseV2", {g.dy(), g.x(1)})); }

}  // namespace

void register_reverse(tw::Plugin& p) {
  p.op<Gradient, Rule>("ReverseV2(tensor: T, axis: Tidx) -> (output: T); Tidx: " OPS_INDEX
                       " = int32; T: {uint8, int8, uint16, int16, int32, uint32, int64, uint64, bool, bfloat16, half, float, double, "
                       "complex64, complex128, string}; ?data tensor; doc \"the elements in reverse order along these axes; negative axes "
                       "count from the end\"");
}

}  // namespace thalweg::ops
