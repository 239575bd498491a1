// ResourceApplyRMSProp, ResourceApplyCenteredRMSProp and their sparse forms (Hinton, 2012; centred as in Graves, 2013):
//   ms += (1 - rho) * (grad^2 - ms);  mom = momentum * mom + lr * grad / sqrt(ms + epsilon);  var -= mom
//   centred: mg += (1 - rho) * (grad - mg), and ms - mg^2 + epsilon under the root.
#include "ops/common/types.h"
#include "ops/common/variable.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

// kSlots: the number of handles, including that of the variable.
template <uint32_t kSlots>
void Rule(const tw::Shape& s) {
  WantScalars(s, kSlots, {"lr", "rho", "momentum", "epsilon"});
  WantOneShape(s, kSlots, kSlots + 4);
}
template <uint32_t kSlots>
void SparseRule(const tw::Shape& s) {
  WantScalars(s, kSlots, {"lr", "rho", "momentum", "epsilon"});
  WantRows(s, kSlots, kSlots + 4, kSlots + 5);
}

#define FACTORS "lr: T, rho: T, momentum: T, epsilon: T, grad: T"
#define LAST "use_locking: bool = false; stateful; no_gradient \"it has no outputs\"; "

}  // namespace

void register_apply_rmsprop(tw::Plugin& p) {
  p.op<nullptr, Rule<3>>("ResourceApplyRMSProp(var: resource, ms: resource, mom: resource, " FACTORS ") -> (); T: " OPS_NUMBERS "; " LAST
                         "doc \"ms += (1 - rho) * (grad^2 - ms); mom = momentum * mom + lr * grad / sqrt(ms + epsilon); var -= mom\"");
  p.op<nullptr, SparseRule<3>>("ResourceSparseApplyRMSProp(var: resource, ms: resource, mom: resource, " FACTORS
                               ", indices: Tindices) -> (); T: " OPS_NUMBERS "; Tindices: " OPS_INDEX "; " LAST
                               "doc \"ResourceApplyRMSProp on the rows that indices names, one after the other\"");
  p.op<nullptr, Rule<4>>("ResourceApplyCenteredRMSProp(var: resource, mg: resource, ms: resource, mom: resource, " FACTORS
                         ") -> (); T: " OPS_NUMBERS "; " LAST
                         "doc \"ResourceApplyRMSProp by the variance of the gradient: ms less the square of its average mg\"");
  p.op<nullptr, SparseRule<4>>("ResourceSparseApplyCenteredRMSProp(var: resource, mg: resource, ms: resource, mom: resource, " FACTORS
                               ", indices: Tindices) -> (); T: " OPS_NUMBERS "; Tindices: " OPS_INDEX "; " LAST
                               "doc \"ResourceApplyCenteredRMSProp on the rows that indices names, one after the other\"");
  p.op<nullptr, HandOnRule<Rule<3>>>(
      "ApplyRMSProp(var: ref(T), ms: ref(T), mom: ref(T), lr: T, rho: T, momentum: T, epsilon: T, grad: T) -> (out: ref(T)); "
      "T: " OPS_NUMBERS "; use_locking: bool = false; " OPS_HANDS_ON
      "runs_as ResourceApplyRMSProp; doc \"ResourceApplyRMSProp on variables by reference\"");
}

}  // namespace thalweg::ops
