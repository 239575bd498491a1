// Adam. The powers of beta1 and beta2 that correct the bias are variables of their own, multiplied
// after all updates of the step.
#include "ops/library/build.h"
#include "ops/library/options.h"
#include "thalweg/op.h"
#include "thalweg/train.h"

using namespace thalweg::library;

void tw_adam_init(tw_adam* options) {
  if (options) *options = {sizeof(tw_adam), 0, 0, 0.9, 0.999, 1e-8, 0, 0};
}

const tw_operation* tw_train_adam(tw_scope* scope, const tw_output* variables, const tw_gradient* gradients, uint32_t n,
                                  const tw_adam* options) {
  return Protect(scope, [&]() -> const tw_operation* {
    const tw_adam o = ReadOptions(scope, "tw_adam", options, tw_adam_init);
    CheckRange(scope, "tw_adam: beta1", o.beta1, 0, 1);
    CheckRange(scope, "tw_adam: beta2", o.beta2, 0, 1);
    CheckAbove0(scope, "tw_adam: epsilon", o.epsilon);
    const tw_output learning_rate = RateOr(scope, o.learning_rate, 0.001);
    const uint32_t type = PowerType(scope, variables, gradients, n);
    const Power power1 = MakePower(scope, "beta1_power", o.beta1, type), power2 = MakePower(scope, "beta2_power", o.beta2, type);

    const tw_operation* updates = ForEach(
        scope, "tw_train_adam", variables, gradients, n, [&](tw_output variable, const VariableInfo& info, const tw_gradient& gradient) {
          CheckHeld(scope, "tw_adam: beta1", o.beta1, info);
          CheckHeld(scope, "tw_adam: beta2", o.beta2, info);
          CheckHeld(scope, "tw_adam: epsilon", o.epsilon, info);
          const auto scalar = [&](double value) { return tw_scope_scalar(scope, info.dtype, value); };
          const auto cast = [&](tw_output value) { return CastTo(scope, value, info.dtype); };
          const tw_output m = Slot(scope, info, "Adam"), v = Slot(scope, info, "Adam");
          // m and v decay in all rows, so a sparse gradient has no advantage here.
          OpenOp op = BeginApply(scope, "Adam",
                                 {variable, m, v, cast(power1.value), cast(power2.value), cast(learning_rate), scalar(o.beta1),
                                  scalar(o.beta2), scalar(o.epsilon)},
                                 {Dense(scope, gradient, info), 0});
          tw_op_set_bool(op, "use_nesterov", o.nesterov != 0);
          return op.EndOperation();
        });
    const tw_operation* const all[] = {updates, Advance(scope, power1, updates), Advance(scope, power2, updates)};
    return tw_scope_group(scope, FreeName(scope, "Adam").c_str(), all, 3);
  });
}
