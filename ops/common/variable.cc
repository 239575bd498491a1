#include "ops/common/variable.h"

namespace thalweg::ops {

MaybeDims Variable(const tw::Shape& s, uint32_t i, uint32_t type) {
  WantScalar(s, i, "the handle");
  uint32_t holds = 0;
  tw_shape shape{};
  s.handle(i, &holds, &shape);
  if (holds != 0 && holds != type)
    Fail("the variable at input " + std::to_string(i) + " holds " + TypeName(holds) + " but the op works on " + TypeName(type) +
         "; make the type attribute " + TypeName(holds));
  return ToDims(shape);
}

void WantOneShape(const tw::Shape& s, uint32_t count, uint32_t grad) {
  MaybeDims shape = In(s, grad);
  for (uint32_t i = 0; i < count; ++i)
    shape = Merge(s, shape, Variable(s, i, s.type("T")), "the shapes of the gradient and of the variable at input " + std::to_string(i));
}

}  // namespace thalweg::ops
