// VariableShape reads the shape of a variable's value.
#include "ops/common/shape.h"
#include "ops/common/types.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

void Rule(const tw::Shape& s) {
  uint32_t type = 0;
  tw_shape shape{nullptr, -1, 0};
  s.handle(0, &type, &shape);
  s.out(0, Dims{shape.rank >= 0 ? shape.rank : -1});
}

}  // namespace

void register_variable_shape(tw::Plugin& p) {
  p.op<nullptr, Rule>("VariableShape(input: resource) -> (output: out_type); out_type: " OPS_INDEX
                      " = int32; stateful; no_gradient \"sizes have no derivative\"; doc \"the shape of the variable's value\"");
}

}  // namespace thalweg::ops
