// If, StatelessIf, Case and StatelessCase call one of several functions.
#include "ops/functional/outputs.h"
#include "ops/register.h"

namespace thalweg::ops {

void register_if(tw::Plugin& p) {
  p.op<nullptr, StatedShapes>(R"(
      If(cond: Tcond, input: Tin) -> (output: Tout); Tcond: type; Tin: list(type) >= 0; Tout: list(type) >= 0; then_branch: func;
      else_branch: func; output_shapes: list(shape) = []; stateful; role if;
      doc "what function `then_branch` or `else_branch` gives")");
  p.op<nullptr, StatedShapes>(R"(
      StatelessIf(cond: Tcond, input: Tin) -> (output: Tout); Tcond: type; Tin: list(type) >= 0; Tout: list(type) >= 0;
      then_branch: func; else_branch: func; output_shapes: list(shape) = []; role stateless_if;
      doc "If, of functions without state")");
  p.op<nullptr, StatedShapes>(R"(
      Case(branch_index: int32, input: Tin) -> (output: Tout); Tin: list(type) >= 0; Tout: list(type) >= 0; branches: list(func) >= 1;
      output_shapes: list(shape) = []; stateful; role case;
      doc "what the function of that number gives")");
  p.op<nullptr, StatedShapes>(R"(
      StatelessCase(branch_index: int32, input: Tin) -> (output: Tout); Tin: list(type) >= 0; Tout: list(type) >= 0;
      branches: list(func) >= 1; output_shapes: list(shape) = []; role stateless_case;
      doc "Case, of functions without state")");
}

}  // namespace thalweg::ops
