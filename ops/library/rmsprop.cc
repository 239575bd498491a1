// RMSProp, centred or not.
#include "ops/library/build.h"
#include "ops/library/options.h"
#include "thalweg/train.h"

using namespace thalweg::library;

void tw_rmsprop_init(tw_rmsprop* options) {
  if (options) *options = {sizeof(tw_rmsprop), 0, 0, 0.9, 0, 1e-10, 0, 0};
}

const tw_operation* tw_train_rmsprop(tw_scope* scope, const tw_output* variables, const tw_gradient* gradients, uint32_t n,
                                     const tw_rmsprop* options) {
  return Protect(scope, [&]() -> const tw_operation* {
    const tw_rmsprop o = ReadOptions(scope, "tw_rmsprop", options, tw_rmsprop_init);
    CheckRange(scope, "tw_rmsprop: rho", o.rho, 0, 1);
    CheckRange(scope, "tw_rmsprop: momentum", o.momentum, 0, 1);
    CheckAbove0(scope, "tw_rmsprop: epsilon", o.epsilon);
    const tw_output learning_rate = RateOr(scope, o.learning_rate, 0.001);
    return ForEach(scope, "tw_train_rmsprop", variables, gradients, n,
                   [&](tw_output variable, const VariableInfo& info, const tw_gradient& gradient) {
                     CheckHeld(scope, "tw_rmsprop: rho", o.rho, info);
                     CheckHeld(scope, "tw_rmsprop: momentum", o.momentum, info);
                     CheckHeld(scope, "tw_rmsprop: epsilon", o.epsilon, info);
                     const auto scalar = [&](double value) { return tw_scope_scalar(scope, info.dtype, value); };
                     const tw_output squares = Slot(scope, info, "RMSProp", 1);
                     std::vector<tw_output> before = {variable};
                     if (o.centered) before.push_back(Slot(scope, info, "RMSProp"));
                     before.insert(before.end(), {squares, Slot(scope, info, "RMSProp"), CastTo(scope, learning_rate, info.dtype),
                                                  scalar(o.rho), scalar(o.momentum), scalar(o.epsilon)});
                     const tw_gradient g = UniqueRows(scope, gradient);
                     return BeginApply(scope, o.centered ? "CenteredRMSProp" : "RMSProp", before, g).EndOperation();
                   });
  });
}
