// ResourceApplyAdagrad, ResourceApplyAdagradV2 and their sparse forms (Duchi, Hazan and Singer,
// 2011): accum += grad^2, unless update_slots is false; var -= lr * grad / sqrt(accum). The second
// version divides by sqrt(accum) + epsilon.
#include "ops/common/types.h"
#include "ops/common/variable.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

void Rule(const tw::Shape& s) {
  WantScalars(s, 2, {"lr"});
  WantOneShape(s, 2, 3);
}
void SparseRule(const tw::Shape& s) {
  WantScalars(s, 2, {"lr"});
  WantRows(s, 2, 3, 4);
}
void RuleV2(const tw::Shape& s) {
  WantScalars(s, 2, {"lr", "epsilon"});
  WantOneShape(s, 2, 4);
}
void SparseRuleV2(const tw::Shape& s) {
  WantScalars(s, 2, {"lr", "epsilon"});
  WantRows(s, 2, 4, 5);
}

#define LAST "use_locking: bool = false; update_slots: bool = true; stateful; no_gradient \"it has no outputs\"; "

}  // namespace

void register_apply_adagrad(tw::Plugin& p) {
  p.op<nullptr, Rule>("ResourceApplyAdagrad(var: resource, accum: resource, lr: T, grad: T) -> (); T: " OPS_NUMBERS "; " LAST
                      "doc \"accum += grad^2; var -= lr * grad / sqrt(accum)\"");
  p.op<nullptr, SparseRule>(
      "ResourceSparseApplyAdagrad(var: resource, accum: resource, lr: T, grad: T, indices: Tindices) -> (); T: " OPS_NUMBERS
      "; Tindices: " OPS_INDEX "; " LAST "doc \"ResourceApplyAdagrad on the rows that indices names, one after the other\"");
  p.op<nullptr, RuleV2>("ResourceApplyAdagradV2(var: resource, accum: resource, lr: T, epsilon: T, grad: T) -> (); T: " OPS_NUMBERS
                        "; " LAST "doc \"accum += grad^2; var -= lr * grad / (sqrt(accum) + epsilon)\"");
  p.op<nullptr, SparseRuleV2>(
      "ResourceSparseApplyAdagradV2(var: resource, accum: resource, lr: T, epsilon: T, grad: T, indices: Tindices) -> (); T: " OPS_NUMBERS
      "; Tindices: " OPS_INDEX "; " LAST "doc \"ResourceApplyAdagradV2 on the rows that indices names, one after the other\"");
  p.op<nullptr, HandOnRule<Rule>>(
      "ApplyAdagrad(var: ref(T), accum: ref(T), lr: T, grad: T) -> (out: ref(T)); "
      "T: " OPS_NUMBERS "; use_locking: bool = false; update_slots: bool = true; " OPS_HANDS_ON
      "runs_as ResourceApplyAdagrad; doc \"ResourceApplyAdagrad on variables by reference\"");
}

}  // namespace thalweg::ops
