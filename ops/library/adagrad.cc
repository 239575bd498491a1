// AdaGrad.
#include "ops/library/build.h"
#include "ops/library/options.h"
#include "thalweg/train.h"

using namespace thalweg::library;

void tw_adagrad_init(tw_adagrad* options) {
  if (options) *options = {sizeof(tw_adagrad), 0, 0, 0.1, 0};
}

const tw_operation* tw_train_adagrad(tw_scope* scope, const tw_output* variables, const tw_gradient* gradients, uint32_t n,
                                     const tw_adagrad* options) {
  return Protect(scope, [&]() -> const tw_operation* {
    const tw_adagrad o = ReadOptions(scope, "tw_adagrad", options, tw_adagrad_init);
    CheckNotBelow0(scope, "tw_adagrad: epsilon", o.epsilon);
    // With epsilon 0 and an accumulator of 0, a gradient of 0 would be divided by the root of 0.
    if (o.epsilon > 0) {
      CheckNotBelow0(scope, "tw_adagrad: initial_accumulator", o.initial_accumulator);
    } else {
      CheckAbove0(scope, "tw_adagrad: initial_accumulator", o.initial_accumulator);
    }
    const tw_output learning_rate = RateOr(scope, o.learning_rate, 0.01);
    return ForEach(scope, "tw_train_adagrad", variables, gradients, n,
                   [&](tw_output variable, const VariableInfo& info, const tw_gradient& gradient) {
                     CheckHeld(scope, "tw_adagrad: epsilon", o.epsilon, info);
                     const tw_output accumulator = Slot(scope, info, "Adagrad", o.initial_accumulator);
                     std::vector<tw_output> before = {variable, accumulator, CastTo(scope, learning_rate, info.dtype)};
                     if (o.epsilon > 0) before.push_back(tw_scope_scalar(scope, info.dtype, o.epsilon));
                     const tw_gradient g = UniqueRows(scope, gradient);
                     return BeginApply(scope, o.epsilon > 0 ? "AdagradV2" : "Adagrad", before, g).EndOperation();
                   });
  });
}
