// Adam. The powers of beta1 and beta2 that correct the bias are variables of their own, multiplied once all updates of the step are done.
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
    if (!(o.epsilon > 0)) Fail(scope, TW_INVALID_ARGUMENT, "tw_adam: epsilon is " + std::to_string(o.epsilon) + "; it must be above 0");
    const tw_output learning_rate = o.learning_rate ? o.learning_rate : tw_scope_scalar(scope, TW_FLOAT, 0.001);

    // Float whatever the variables are: half would lose 0.999^t.
    struct Power {
      tw_output variable, value;
    };
    const auto make_power = [&](const char* name, double beta) {
      const tw_output variable = tw_variable_create(scope, FreeName(scope, name).c_str(), tw_scope_scalar(scope, TW_FLOAT, beta));
      return Power{variable, tw_variable_read(scope, variable)};
    };
    const Power power1 = make_power("beta1_power", o.beta1), power2 = make_power("beta2_power", o.beta2);

    const tw_operation* updates = ForEach(
        scope, "tw_train_adam", variables, gradients, n, [&](tw_output variable, const VariableInfo& info, const tw_gradient& gradient) {
          const auto scalar = [&](double value) { return tw_scope_scalar(scope, info.dtype, value); };
          const auto cast = [&](tw_output value) { return CastTo(scope, value, info.dtype); };
          const tw_output m = Slot(scope, info, "Adam"), v = Slot(scope, info, "Adam_1");
          // m and v decay everywhere, so a sparse gradient saves nothing once it is here.
          const tw_output g = Dense(scope, gradient, info);
          const tw_output inputs[] = {
              variable,          m, v, cast(power1.value), cast(power2.value), cast(learning_rate), scalar(o.beta1), scalar(o.beta2),
              scalar(o.epsilon), g};
          tw_op* op = tw_scope_begin(scope, "ResourceApplyAdam", nullptr);
          tw_op_add_inputs(op, inputs, 10);
          tw_op_set_bool(op, "use_nesterov", o.nesterov != 0);
          return tw_scope_end_operation(scope, op);
        });

    const auto advance = [&](const Power& power, double beta) {
      const tw_output next = tw_scope_op2(scope, "Mul", power.value, tw_scope_scalar(scope, TW_FLOAT, beta));
      return Update(scope, "AssignVariableOp", {power.variable, next}, {updates});
    };
    const tw_operation* const all[] = {updates, advance(power1, o.beta1), advance(power2, o.beta2)};
    return tw_scope_group(scope, FreeName(scope, "Adam").c_str(), all, 3);
  });
}
