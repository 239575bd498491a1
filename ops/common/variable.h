// What ops on variables share: what is known about the variable behind a handle.
#pragma once
#include "ops/common/shape.h"

namespace thalweg::ops {

// The shape of the variable behind input i, after a check that it holds that type.
MaybeDims Variable(const tw::Shape& s, uint32_t i, uint32_t type);
// Optimizers: inputs first .. first + count - 1 are handles whose variables and the tensor at input `grad` must have one shape.
void WantOneShape(const tw::Shape& s, uint32_t count, uint32_t grad);

}  // namespace thalweg::ops
