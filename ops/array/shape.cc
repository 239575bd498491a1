// Shape, ShapeN, Size and Rank return the size of a tensor as a tensor.
#include "ops/common/shape.h"

#include "ops/common/types.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

void ShapeRule(const tw::Shape& s) {
  for (uint32_t i = 0; i < s.c->n_in; ++i) s.out(i, Dims{s.rank(i)});
}

}  // namespace

void register_shape(tw::Plugin& p) {
  p.op<nullptr, ShapeRule>("Shape(input: T) -> (output: out_type[_]); T: type; out_type: " OPS_INDEX
                           " = int32; shape_only input; role shape; "
                           "no_gradient \"sizes do not depend on values\"; doc \"the sizes of the axes\"");
  p.op<nullptr, ShapeRule>("ShapeN(input: T * N) -> (output: out_type[_] * N); N: int >= 1; T: type; out_type: " OPS_INDEX
                           " = int32; shape_only input; "
                           "no_gradient \"sizes do not depend on values\"; doc \"the sizes of the axes of each input\"");
  p.op("Size(input: T) -> (output: out_type[]); T: type; out_type: " OPS_INDEX
       " = int32; shape_only input; "
       "no_gradient \"sizes do not depend on values\"; doc \"the number of elements\"");
  p.op(R"(Rank(input: T) -> (output: int32[]); T: type; shape_only input; no_gradient "sizes do not depend on values";
          doc "the number of axes")");
}

}  // namespace thalweg::ops
