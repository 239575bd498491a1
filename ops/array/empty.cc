// Empty makes a tensor whose elements are yet to be set.
#include "ops/common/shape.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

void Rule(const tw::Shape& s) { Set(s, 0, ShapeValue(s, 0, "shape")); }

}  // namespace

void register_empty(tw::Plugin& p) {
  p.op<nullptr, Rule>(
      "Empty(shape: int32) -> (output: dtype); dtype: type; init: bool = false; no_gradient \"its elements depend on nothing\"; doc \"a "
      "tensor of that shape, of zeros\"");
}

}  // namespace thalweg::ops
