// Unique and UniqueV2 keep one of each element, or one of each slice along an axis.
#include "ops/common/shape.h"
#include "ops/common/types.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

// The number of results depends on the values, so the kernel allocates the outputs.
void Rule(const tw::Shape& s) {
  WantVector(s, 0, "x");
  s.out(0, Dims{-1});
  s.out(1, Dims{s.known(0) ? s.dim(0, 0) : -1});
}

void AxisRule(const tw::Shape& s) {
  WantVector(s, 1, "axis");
  const int64_t given = s.known(1) ? s.dim(1, 0) : -1;
  if (given > 1) Fail("'axis' must be one axis, or none for a vector, but has " + tw::text(given) + " entries");
  if (given == 0) return Rule(s);
  Dims axis;
  s.out(1, Dims{-1});
  if (!s.known(0)) return;
  if (given == 1 && s.rank(0) == 0) Fail("'x' is a scalar, which has no axis");
  Dims out(static_cast<size_t>(s.rank(0)), -1);
  if (s.value(1, &axis)) {
    const size_t k = static_cast<size_t>(Axis(axis[0], s.rank(0), "axis"));
    out = *In(s, 0);
    s.out(1, Dims{out[k]});
    out[k] = -1;
  }
  s.out(0, out);
}

}  // namespace

#define UNIQUE_DOC                                                                                                            \
  "no_gradient \"which elements stay jumps with the input\"; doc \"in the order in which they come first; idx says which of " \
  "them each one is; 0 equals -0, NaN equals nothing\""

void register_unique(tw::Plugin& p) {
  p.op<nullptr, Rule>("Unique(x: T) -> (y: T, idx: out_idx); T: type; out_idx: " OPS_INDEX " = int32; ?limits y 0 elements x; " UNIQUE_DOC);
  p.op<nullptr, AxisRule>("UniqueV2(x: T, axis: Taxis) -> (y: T, idx: out_idx); T: type; Taxis: " OPS_INDEX " = int64; out_idx: " OPS_INDEX
                          " = int32; ?limits y 0 axis x 0; " UNIQUE_DOC);
}

}  // namespace thalweg::ops
