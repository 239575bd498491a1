// While, StatelessWhile and For repeat functions.
#include "ops/functional/outputs.h"
#include "ops/register.h"

namespace thalweg::ops {

void register_while(tw::Plugin& p) {
  p.op<nullptr, StatedShapes>(R"(
      While(input: T) -> (output: T); T: list(type) >= 0; cond: func; body: func; output_shapes: list(shape) = [];
      parallel_iterations: int = 10; stateful; role while;
      doc "what is left of the loop variables when function `cond` says no")");
  p.op<nullptr, StatedShapes>(R"(
      StatelessWhile(input: T) -> (output: T); T: list(type) >= 0; cond: func; body: func; output_shapes: list(shape) = [];
      parallel_iterations: int = 10; role stateless_while;
      doc "While, of functions without state")");
  p.op<nullptr, StatedShapes>(R"(
      For(start: int32, limit: int32, delta: int32, input: T) -> (output: T); T: list(type) >= 0; body: func;
      role for;
      doc "function `body` over and over, given the number and what it gave before")");
}

}  // namespace thalweg::ops
