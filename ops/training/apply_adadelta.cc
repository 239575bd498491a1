// ResourceApplyAdadelta and its sparse form (Zeiler, 2012): accum = rho * accum + (1 - rho) * grad^2;
// update = grad * sqrt(accum_update + epsilon) / sqrt(accum + epsilon); var -= lr * update;
// accum_update = rho * accum_update + (1 - rho) * update^2.
#include "ops/common/types.h"
#include "ops/common/variable.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

void Rule(const tw::Shape& s) {
  WantScalars(s, 3, {"lr", "rho", "epsilon"});
  WantOneShape(s, 3, 6);
}
void SparseRule(const tw::Shape& s) {
  WantScalars(s, 3, {"lr", "rho", "epsilon"});
  WantRows(s, 3, 6, 7);
}

#define LAST "use_locking: bool = false; stateful; no_gradient \"it has no outputs\"; "

}  // namespace

void register_apply_adadelta(tw::Plugin& p) {
  p.op<nullptr, Rule>(
      "ResourceApplyAdadelta(var: resource, accum: resource, accum_update: resource, lr: T, rho: T, epsilon: T, grad: T) -> (); "
      "T: " OPS_NUMBERS "; " LAST "doc \"one step of Adadelta; accum and accum_update are the averages of squared gradients and steps\"");
  p.op<nullptr, SparseRule>(
      "ResourceSparseApplyAdadelta(var: resource, accum: resource, accum_update: resource, lr: T, rho: T, epsilon: T, grad: T, "
      "indices: Tindices) -> (); T: " OPS_NUMBERS "; Tindices: " OPS_INDEX "; " LAST
      "doc \"ResourceApplyAdadelta on the rows that indices names, one after the other\"");
  p.op<nullptr, HandOnRule<Rule>>(
      "ApplyAdadelta(var: ref(T), accum: ref(T), accum_update: ref(T), lr: T, rho: T, epsilon: T, grad: T) -> (out: ref(T)); "
      "T: " OPS_NUMBERS "; use_locking: bool = false; " OPS_HANDS_ON
      "runs_as ResourceApplyAdadelta; doc \"ResourceApplyAdadelta on variables by reference\"");
}

}  // namespace thalweg::ops
