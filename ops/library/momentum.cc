// Gradient descent with momentum.
#include "ops/library/build.h"
#include "ops/library/options.h"
#include "thalweg/op.h"
#include "thalweg/train.h"

using namespace thalweg::library;

void tw_momentum_init(tw_momentum* options) {
  if (options) *options = {sizeof(tw_momentum), 0, 0, 0.9, 0, 0};
}

const tw_operation* tw_train_momentum(tw_scope* scope, const tw_output* variables, const tw_gradient* gradients, uint32_t n,
                                      const tw_momentum* options) {
  return Protect(scope, [&]() -> const tw_operation* {
    const tw_momentum o = ReadOptions(scope, "tw_momentum", options, tw_momentum_init);
    CheckRange(scope, "tw_momentum: momentum", o.momentum, 0, 1);
    const tw_output learning_rate = RateOr(scope, o.learning_rate, 0.01);
    return ForEach(scope, "tw_train_momentum", variables, gradients, n,
                   [&](tw_output variable, const VariableInfo& info, const tw_gradient& gradient) {
                     CheckHeld(scope, "tw_momentum: momentum", o.momentum, info);
                     const tw_output slot = Slot(scope, info, "Momentum");
                     const tw_output rate = CastTo(scope, learning_rate, info.dtype);
                     // Repeated rows would decay twice.
                     OpenOp op = BeginApply(scope, "Momentum", {variable, slot, rate}, UniqueRows(scope, gradient),
                                            {tw_scope_scalar(scope, info.dtype, o.momentum)});
                     tw_op_set_bool(op, "use_nesterov", o.nesterov != 0);
                     return op.EndOperation();
                   });
  });
}
