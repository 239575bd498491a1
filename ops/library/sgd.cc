// Gradient descent.
#include "ops/library/build.h"
#include "ops/library/options.h"
#include "thalweg/train.h"

using namespace thalweg::library;

void tw_sgd_init(tw_sgd* options) {
  if (options) *options = {sizeof(tw_sgd), 0, 0};
}

const tw_operation* tw_train_sgd(tw_scope* scope, const tw_output* variables, const tw_gradient* gradients, uint32_t n,
                                 const tw_sgd* options) {
  return Protect(scope, [&]() -> const tw_operation* {
    const tw_sgd o = ReadOptions(scope, "tw_sgd", options, tw_sgd_init);
    const tw_output learning_rate = RateOr(scope, o.learning_rate, 0.01);
    return ForEach(
        scope, "tw_train_sgd", variables, gradients, n, [&](tw_output variable, const VariableInfo& info, const tw_gradient& gradient) {
          const tw_output rate = CastTo(scope, learning_rate, info.dtype);
          if (gradient.rows == 0) return Update(scope, "ResourceApplyGradientDescent", {variable, rate, gradient.values});
          // Repeated rows are correct as they are, because each is subtracted.
          return Update(scope, "ResourceScatterSub", {variable, gradient.rows, tw_scope_op2(scope, "Mul", gradient.values, rate)});
        });
  });
}
