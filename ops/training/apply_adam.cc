// ResourceApplyAdam (Kingma and Ba, 2014, the form with epsilon beside the root that TensorFlow uses):
//   a = lr * sqrt(1 - beta2_power) / (1 - beta1_power);  m += (grad - m) * (1 - beta1);  v += (grad^2 - v) * (1 - beta2)
//   var -= a * m / (sqrt(v) + epsilon), with Nesterov a * (m * beta1 + (1 - beta1) * grad) / (sqrt(v) + epsilon)
// ResourceApplyAdamWithAmsgrad (Reddi, Kale and Kumar, 2018) divides by the square root of vhat =
// max(vhat, v).
#include "ops/common/types.h"
#include "ops/common/variable.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

void Rule(const tw::Shape& s) {
  WantScalars(s, 3, {"beta1_power", "beta2_power", "lr", "beta1", "beta2", "epsilon"});
  WantOneShape(s, 3, 9);
}
void AmsgradRule(const tw::Shape& s) {
  WantScalars(s, 4, {"beta1_power", "beta2_power", "lr", "beta1", "beta2", "epsilon"});
  WantOneShape(s, 4, 10);
}

}  // namespace

void register_apply_adam(tw::Plugin& p) {
  p.op<nullptr, Rule>(
      "ResourceApplyAdam(var: resource, m: resource, v: resource, beta1_power: T, beta2_power: T, lr: T, beta1: T, beta2: T, epsilon: T, "
      "grad: T) -> (); T: " OPS_NUMBERS
      "; use_locking: bool = false; use_nesterov: bool = false; stateful; "
      "no_gradient \"it has no outputs\"; doc \"one step of Adam; m and v are the moments' variables\"");
  p.op<nullptr, AmsgradRule>(
      "ResourceApplyAdamWithAmsgrad(var: resource, m: resource, v: resource, vhat: resource, beta1_power: T, beta2_power: T, lr: T, "
      "beta1: T, beta2: T, epsilon: T, grad: T) -> (); T: " OPS_NUMBERS
      "; use_locking: bool = false; stateful; no_gradient \"it has no outputs\"; "
      "doc \"one step of Adam whose divisor never shrinks; vhat holds the largest v so far\"");
  p.op<nullptr, HandOnRule<Rule>>(
      "ApplyAdam(var: ref(T), m: ref(T), v: ref(T), beta1_power: T, beta2_power: T, lr: T, beta1: T, beta2: T, epsilon: T, grad: T) -> "
      "(out: ref(T)); "
      "T: " OPS_NUMBERS "; use_locking: bool = false; use_nesterov: bool = false; " OPS_HANDS_ON
      "runs_as ResourceApplyAdam; doc \"ResourceApplyAdam on variables by reference\"");
}

}  // namespace thalweg::ops
