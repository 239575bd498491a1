// Abort fails the step when it runs.
#include "ops/register.h"

namespace thalweg::ops {

void register_abort(tw::Plugin& p) {
  p.op(R"(
      Abort() -> (); error_msg: string = ""; exit_without_error: bool = false; stateful; no_gradient "it has no outputs";
      doc "fails the step with `error_msg`")");
}

}  // namespace thalweg::ops
