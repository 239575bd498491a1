// ApproximateEqual compares two tensors element by element with a tolerance.
#include "ops/common/shape.h"
#include "ops/common/types.h"
#include "ops/register.h"

namespace thalweg::ops {

void register_approximate_equal(tw::Plugin& p) {
  p.op<nullptr, SameShapesRule>("ApproximateEqual(x: T, y: T) -> (z: bool); T: " OPS_NUMBERS
                                "; tolerance: float = 1e-5; commutative; no_gradient \"truth values have no derivative\"; "
                                "doc \"whether |x - y| < tolerance; the shapes are equal\"");
}

}  // namespace thalweg::ops
