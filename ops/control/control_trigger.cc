// ControlTrigger joins control edges from branches that may not run. The framework runs it itself;
// there is no kernel.
#include "ops/register.h"

namespace thalweg::ops {

void register_control_trigger(tw::Plugin& p) {
  p.op(R"(
      ControlTrigger() -> (); role control_trigger; no_gradient "it has no outputs";
      doc "does nothing, also where a node that it waits for does not run")");
}

}  // namespace thalweg::ops
