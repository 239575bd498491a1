// Assert fails the step if its condition is false.
#include "ops/register.h"

namespace thalweg::ops {

void register_assert(tw::Plugin& p) {
  p.op(R"(
      Assert(condition: bool[], data: T) -> (); T: list(type) >= 1; summarize: int = 3; stateful; no_gradient "it has no outputs";
      doc "fails with the first `summarize` elements of each of `data`, all with -1, where the condition is false")");
}

}  // namespace thalweg::ops
