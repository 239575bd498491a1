// ResourceApplyFtrl, ResourceApplyFtrlV2 and their sparse forms: follow the regularised leader, per coordinate (McMahan et al., 2013). With
// p = -lr_power (usually 1/2) and new = accum + grad^2:
//   linear += grad - (new^p - accum^p) / lr * var;  accum = new
//   var = (sign(linear) * l1 - linear) / (new^p / lr + 2 * l2) where |linear| > l1, else 0
// The second version adds 2 * l2_shrinkage * var to the gradient that goes into linear. With
// multiply_linear_by_lr, the slot `linear` is stored multiplied by lr.
#include "ops/common/types.h"
#include "ops/common/variable.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

void Rule(const tw::Shape& s) {
  WantScalars(s, 4, {"lr", "l1", "l2", "lr_power"});
  WantOneShape(s, 3, 3);
}
void SparseRule(const tw::Shape& s) {
  WantScalars(s, 5, {"lr", "l1", "l2", "lr_power"});
  WantRows(s, 3, 3, 4);
}
void RuleV2(const tw::Shape& s) {
  WantScalars(s, 4, {"lr", "l1", "l2", "l2_shrinkage", "lr_power"});
  WantOneShape(s, 3, 3);
}
void SparseRuleV2(const tw::Shape& s) {
  WantScalars(s, 5, {"lr", "l1", "l2", "l2_shrinkage", "lr_power"});
  WantRows(s, 3, 3, 4);
}

#define FIRST "(var: resource, accum: resource, linear: resource, grad: T, "
#define LAST "use_locking: bool = false; multiply_linear_by_lr: bool = false; stateful; no_gradient \"it has no outputs\"; "

}  // namespace

void register_apply_ftrl(tw::Plugin& p) {
  p.op<nullptr, Rule>("ResourceApplyFtrl" FIRST "lr: T, l1: T, l2: T, lr_power: T) -> (); T: " OPS_NUMBERS "; " LAST
                      "doc \"one step of follow-the-regularised-leader, with penalties l1 * |var| and l2 * var^2\"");
  p.op<nullptr, SparseRule>("ResourceSparseApplyFtrl" FIRST "indices: Tindices, lr: T, l1: T, l2: T, lr_power: T) -> (); T: " OPS_NUMBERS
                            "; Tindices: " OPS_INDEX "; " LAST
                            "doc \"ResourceApplyFtrl on the rows that indices names, one after the other\"");
  p.op<nullptr, RuleV2>("ResourceApplyFtrlV2" FIRST "lr: T, l1: T, l2: T, l2_shrinkage: T, lr_power: T) -> (); T: " OPS_NUMBERS "; " LAST
                        "doc \"ResourceApplyFtrl that shrinks by the size of the variable now, too\"");
  p.op<nullptr, SparseRuleV2>(
      "ResourceSparseApplyFtrlV2" FIRST "indices: Tindices, lr: T, l1: T, l2: T, l2_shrinkage: T, lr_power: T) -> (); T: " OPS_NUMBERS
      "; Tindices: " OPS_INDEX "; " LAST "doc \"ResourceApplyFtrlV2 on the rows that indices names, one after the other\"");
  p.op<nullptr, HandOnRule<Rule>>(
      "ApplyFtrl(var: ref(T), accum: ref(T), linear: ref(T), grad: T, lr: T, l1: T, l2: T, lr_power: T) -> (out: ref(T)); "
      "T: " OPS_NUMBERS "; use_locking: bool = false; multiply_linear_by_lr: bool = false; " OPS_HANDS_ON
      "runs_as ResourceApplyFtrl; doc \"ResourceApplyFtrl on variables by reference\"");
}

}  // namespace thalweg::ops
