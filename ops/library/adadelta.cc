// AdaDelta.
#include "ops/library/build.h"
#include "ops/library/options.h"
#include "thalweg/train.h"

using namespace thalweg::library;

void tw_adadelta_init(tw_adadelta* options) {
  if (options) *options = {sizeof(tw_adadelta), 0, 0, 0.95, 1e-8};
}

const tw_operation* tw_train_adadelta(tw_scope* scope, const tw_output* variables, const tw_gradient* gradients, uint32_t n,
                                      const tw_adadelta* options) {
  return Protect(scope, [&]() -> const tw_operation* {
    const tw_adadelta o = ReadOptions(scope, "tw_adadelta", options, tw_adadelta_init);
    CheckRange(scope, "tw_adadelta: rho", o.rho, 0, 1);
    CheckAbove0(scope, "tw_adadelta: epsilon", o.epsilon);
    const tw_output learning_rate = RateOr(scope, o.learning_rate, 0.001);
    return ForEach(scope, "tw_train_adadelta", variables, gradients, n,
                   [&](tw_output variable, const VariableInfo& info, const tw_gradient& gradient) {
                     CheckHeld(scope, "tw_adadelta: rho", o.rho, info);
                     CheckHeld(scope, "tw_adadelta: epsilon", o.epsilon, info);
                     const auto scalar = [&](double value) { return tw_scope_scalar(scope, info.dtype, value); };
                     const tw_output accumulator = Slot(scope, info, "Adadelta"), updates = Slot(scope, info, "Adadelta");
                     const tw_output rate = CastTo(scope, learning_rate, info.dtype);
                     return BeginApply(scope, "Adadelta", {variable, accumulator, updates, rate, scalar(o.rho), scalar(o.epsilon)},
                                       UniqueRows(scope, gradient))
                         .EndOperation();
                   });
  });
}
