// StringToNumber parses numbers.
#include "ops/common/shape.h"
#include "ops/register.h"

namespace thalweg::ops {

void register_string_to_number(tw::Plugin& p) {
  p.op(R"(
      StringToNumber(string_tensor: string [*s]) -> (output: out_type [*s]);
      out_type: {float, double, int32, int64, uint32, uint64} = float; no_gradient "text has no derivative";
      doc "the number that each text is, white space around it aside; floating-point numbers may be hexadecimal, infinite or NaN")");
}

}  // namespace thalweg::ops
