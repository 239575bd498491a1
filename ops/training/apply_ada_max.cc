// ResourceApplyAdaMax (Kingma and Ba, 2014, section 7.1): m += (1 - beta1) * (grad - m); v = max(beta2 * v, |grad|);
// var -= lr / (1 - beta1_power) * m / (v + epsilon).
#include "ops/common/types.h"
#include "ops/common/variable.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

void Rule(const tw::Shape& s) {
  WantScalars(s, 3, {"beta1_power", "lr", "beta1", "beta2", "epsilon"});
  WantOneShape(s, 3, 8);
}

}  // namespace

void register_apply_ada_max(tw::Plugin& p) {
  p.op<nullptr, Rule>(
      "ResourceApplyAdaMax(var: resource, m: resource, v: resource, beta1_power: T, lr: T, beta1: T, beta2: T, epsilon: T, grad: T) -> (); "
      "T: " OPS_NUMBERS
      "; use_locking: bool = false; stateful; no_gradient \"it has no outputs\"; "
      "doc \"one step of AdaMax; m is the average of gradients, v the decaying largest of their sizes\"");
}

}  // namespace thalweg::ops
