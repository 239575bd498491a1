// ResourceApplyMomentum and its sparse form: accum = momentum * accum + grad; var -= lr * accum,
// with Nesterov var -= lr * (grad + momentum * accum). ResourceApplyKerasMomentum and its sparse
// form accumulate the step: accum = momentum * accum - lr * grad; var += accum, with Nesterov var
// += momentum * accum - lr * grad.
#include "ops/common/types.h"
#include "ops/common/variable.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

void Rule(const tw::Shape& s) {
  WantScalar(s, 2, "lr");
  WantScalar(s, 4, "momentum");
  WantOneShape(s, 2, 3);
}

void SparseRule(const tw::Shape& s) {
  WantScalar(s, 2, "lr");
  WantScalar(s, 5, "momentum");
  WantRows(s, 2, 3, 4);
}

#define LAST "use_locking: bool = false; use_nesterov: bool = false; stateful; no_gradient \"it has no outputs\"; "

}  // namespace

void register_apply_momentum(tw::Plugin& p) {
  p.op<nullptr, Rule>("ResourceApplyMomentum(var: resource, accum: resource, lr: T, grad: T, momentum: T) -> (); T: " OPS_NUMBERS "; " LAST
                      "doc \"accum = momentum * accum + grad; var -= lr * accum, or with Nesterov lr * (grad + momentum * accum)\"");
  p.op<nullptr, SparseRule>(
      "ResourceSparseApplyMomentum(var: resource, accum: resource, lr: T, grad: T, indices: Tindices, momentum: T) -> (); T: " OPS_NUMBERS
      "; Tindices: " OPS_INDEX "; " LAST "doc \"ResourceApplyMomentum on the rows that indices names, one after the other\"");
  p.op<nullptr, Rule>("ResourceApplyKerasMomentum(var: resource, accum: resource, lr: T, grad: T, momentum: T) -> (); T: " OPS_NUMBERS
                      "; " LAST
                      "doc \"accum = momentum * accum - lr * grad; var += accum, or with Nesterov momentum * accum - lr * grad\"");
  p.op<nullptr, SparseRule>(
      "ResourceSparseApplyKerasMomentum(var: resource, accum: resource, lr: T, grad: T, indices: Tindices, momentum: T) -> (); "
      "T: " OPS_NUMBERS "; Tindices: " OPS_INDEX "; " LAST
      "doc \"ResourceApplyKerasMomentum on the rows that indices names, one after the other\"");
  p.op<nullptr, HandOnRule<Rule>>(
      "ApplyMomentum(var: ref(T), accum: ref(T), lr: T, grad: T, momentum: T) -> (out: ref(T)); "
      "T: " OPS_NUMBERS "; use_locking: bool = false; use_nesterov: bool = false; " OPS_HANDS_ON
      "runs_as ResourceApplyMomentum; doc \"ResourceApplyMomentum on variables by reference\"");
}

}  // namespace thalweg::ops
