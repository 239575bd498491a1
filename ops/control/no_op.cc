// NoOp does nothing; control edges start from it and lead to it.
#include "ops/register.h"

namespace thalweg::ops {

void register_no_op(tw::Plugin& p) { p.op(R"(NoOp() -> (); role no_op; no_gradient "it has no outputs"; doc "does nothing")"); }

}  // namespace thalweg::ops
