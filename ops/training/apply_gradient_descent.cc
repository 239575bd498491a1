// ResourceApplyGradientDescent: var -= alpha * delta.
#include "ops/common/types.h"
#include "ops/common/variable.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

void Rule(const tw::Shape& s) {
  WantScalar(s, 1, "alpha");
  WantOneShape(s, 1, 2);
}

}  // namespace

void register_apply_gradient_descent(tw::Plugin& p) {
  p.op<nullptr, Rule>("ResourceApplyGradientDescent(var: resource, alpha: T, delta: T) -> (); T: " OPS_NUMBERS
                      "; use_locking: bool = false; stateful; no_gradient \"it has no outputs\"; doc \"var -= alpha * delta\"");
  p.op<nullptr, HandOnRule<Rule>>(
      "ApplyGradientDescent(var: ref(T), alpha: T, delta: T) -> (out: ref(T)); "
      "T: " OPS_NUMBERS "; use_locking: bool = false; " OPS_HANDS_ON
      "runs_as ResourceApplyGradientDescent; doc \"ResourceApplyGradientDescent on variables by reference\"");
}

}  // namespace thalweg::ops
