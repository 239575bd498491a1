#include "ops/common/variable.h"

namespace thalweg::ops {

MaybeDims Variable(const tw::Shape& s, uint32_t i, uint32_t type) {
  if (s.type_in(i) > TW_REF) return In(s, i);
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

void WantRows(const tw::Shape& s, uint32_t count, uint32_t grad, uint32_t indices) {
  WantVector(s, indices, "indices");
  MaybeDims shape = Variable(s, 0, s.type("T"));
  for (uint32_t i = 1; i < count; ++i)
    shape = Merge(s, shape, Variable(s, i, s.type("T")), "the shapes of the variables at inputs 0 and " + std::to_string(i));
  if (!shape) return;
  if (shape->empty()) Fail("'var' is a scalar, which has no rows; use the op without 'Sparse' in its name");
  const Dims rows = Join({s.known(indices) ? s.dim(indices, 0) : -1}, Sub(*shape, 1, shape->size()));
  Merge(s, In(s, grad), rows, "the shape of 'grad' and that of the rows which 'indices' names");
}

void WantScalars(const tw::Shape& s, uint32_t first, std::initializer_list<const char*> names) {
  for (const char* name : names) WantScalar(s, first++, name);
}

}  // namespace thalweg::ops
