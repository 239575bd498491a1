// Follow the regularised leader.
#include "ops/library/build.h"
#include "ops/library/options.h"
#include "thalweg/train.h"

using namespace thalweg::library;

void tw_ftrl_init(tw_ftrl* options) {
  if (options) *options = {sizeof(tw_ftrl), 0, 0, -0.5, 0.1, 0, 0, 0};
}

const tw_operation* tw_train_ftrl(tw_scope* scope, const tw_output* variables, const tw_gradient* gradients, uint32_t n,
                                  const tw_ftrl* options) {
  return Protect(scope, [&]() -> const tw_operation* {
    const tw_ftrl o = ReadOptions(scope, "tw_ftrl", options, tw_ftrl_init);
    if (!(o.learning_rate_power <= 0 && std::isfinite(o.learning_rate_power))) {
      Fail(scope, TW_INVALID_ARGUMENT,
           "tw_ftrl: learning_rate_power is " + Text(o.learning_rate_power) + "; it must be finite and not above 0");
    }
    CheckNotBelow0(scope, "tw_ftrl: initial_accumulator", o.initial_accumulator);
    CheckNotBelow0(scope, "tw_ftrl: l1", o.l1);
    CheckNotBelow0(scope, "tw_ftrl: l2", o.l2);
    CheckNotBelow0(scope, "tw_ftrl: l2_shrinkage", o.l2_shrinkage);
    const tw_output learning_rate = RateOr(scope, o.learning_rate, 0.001);
    return ForEach(
        scope, "tw_train_ftrl", variables, gradients, n, [&](tw_output variable, const VariableInfo& info, const tw_gradient& gradient) {
          const auto scalar = [&](double value) { return tw_scope_scalar(scope, info.dtype, value); };
          const tw_output accumulator = Slot(scope, info, "Ftrl", o.initial_accumulator), linear = Slot(scope, info, "Ftrl");
          std::vector<tw_output> after = {CastTo(scope, learning_rate, info.dtype), scalar(o.l1), scalar(o.l2)};
          if (o.l2_shrinkage > 0) after.push_back(scalar(o.l2_shrinkage));
          after.push_back(scalar(o.learning_rate_power));
          const tw_gradient g = UniqueRows(scope, gradient);
          return BeginApply(scope, o.l2_shrinkage > 0 ? "FtrlV2" : "Ftrl", {variable, accumulator, linear}, g, after).EndOperation();
        });
  });
}
