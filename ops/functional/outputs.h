// The shape rule of ops that call functions: output shapes as the node states them.
#pragma once
#include "ops/common/shape.h"

namespace thalweg::ops {

// Reads attribute `output_shapes`, which has one shape per output or is empty.
inline void StatedShapes(const tw::Shape& s) {
  const tw_attr* stated = s.find("output_shapes");
  if (!stated || stated->count == 0) return;
  if (stated->count != s.c->n_out) {
    Fail("'output_shapes' has " + std::to_string(stated->count) + " shapes for " + std::to_string(s.c->n_out) + " outputs");
  }
  const auto* shapes = static_cast<const tw_shape*>(stated->data);
  for (uint32_t o = 0; o < s.c->n_out; ++o) s.out(o, shapes[o]);
}

}  // namespace thalweg::ops
