// AdaMax. There is no sparse op: the rows of a sparse gradient are gathered, updated and scattered.
#include "ops/library/build.h"
#include "ops/library/options.h"
#include "thalweg/train.h"

using namespace thalweg::library;

void tw_adamax_init(tw_adamax* options) {
  if (options) *options = {sizeof(tw_adamax), 0, 0, 0.9, 0.999, 1e-8};
}

namespace {

struct AdaMax {
  tw_scope* scope;
  tw_output variable, m, v;
  tw_output rate, power;  // of the variable's type
  const tw_adamax& options;
  const VariableInfo& info;

  tw_output Number(double value) const { return tw_scope_scalar(scope, info.dtype, value); }
  tw_output Op(const char* type, tw_output a, tw_output b) const { return tw_scope_op2(scope, type, a, b); }

  const tw_operation* OnAll(tw_output gradient) const {
    return Update(scope, "ResourceApplyAdaMax",
                  {variable, m, v, power, rate, Number(options.beta1), Number(options.beta2), Number(options.epsilon), gradient});
  }

  const tw_operation* OnRows(const tw_gradient& g) const {
    const tw_output old_m = Typed(scope, "ResourceGather", {m, g.rows}, "dtype", info.dtype);
    const tw_output old_v = Typed(scope, "ResourceGather", {v, g.rows}, "dtype", info.dtype);
    const tw_output new_m = Op("Add", old_m, Op("Mul", Op("Sub", g.values, old_m), Number(1 - options.beta1)));
    const tw_output new_v = Op("Maximum", Op("Mul", old_v, Number(options.beta2)), tw_scope_op1(scope, "Abs", g.values));
    const tw_output alpha = Op("Div", rate, Op("Sub", Number(1), power));
    const tw_output step = Op("Mul", alpha, Op("Div", new_m, Op("Add", new_v, Number(options.epsilon))));
    const tw_operation* const all[] = {Update(scope, "ResourceScatterUpdate", {m, g.rows, new_m}),
                                       Update(scope, "ResourceScatterUpdate", {v, g.rows, new_v}),
                                       Update(scope, "ResourceScatterSub", {variable, g.rows, step})};
    return tw_scope_group(scope, nullptr, all, 3);
  }
};

}  // namespace

const tw_operation* tw_train_adamax(tw_scope* scope, const tw_output* variables, const tw_gradient* gradients, uint32_t n,
                                    const tw_adamax* options) {
  return Protect(scope, [&]() -> const tw_operation* {
    const tw_adamax o = ReadOptions(scope, "tw_adamax", options, tw_adamax_init);
    CheckRange(scope, "tw_adamax: beta1", o.beta1, 0, 1);
    CheckRange(scope, "tw_adamax: beta2", o.beta2, 0, 1);
    CheckAbove0(scope, "tw_adamax: epsilon", o.epsilon);
    const tw_output learning_rate = RateOr(scope, o.learning_rate, 0.001);
    const Power power = MakePower(scope, "beta1_power", o.beta1, PowerType(scope, variables, gradients, n));
    const tw_operation* updates = ForEach(
        scope, "tw_train_adamax", variables, gradients, n, [&](tw_output variable, const VariableInfo& info, const tw_gradient& gradient) {
          CheckHeld(scope, "tw_adamax: beta1", o.beta1, info);
          CheckHeld(scope, "tw_adamax: beta2", o.beta2, info);
          CheckHeld(scope, "tw_adamax: epsilon", o.epsilon, info);
          const tw_output m = Slot(scope, info, "AdaMax"), v = Slot(scope, info, "AdaMax");
          const AdaMax step = {scope, variable, m, v, CastTo(scope, learning_rate, info.dtype), CastTo(scope, power.value, info.dtype),
                               o,     info};
          return gradient.rows ? step.OnRows(UniqueRows(scope, gradient)) : step.OnAll(gradient.values);
        });
    const tw_operation* const all[] = {updates, Advance(scope, power, updates)};
    return tw_scope_group(scope, FreeName(scope, "AdaMax").c_str(), all, 2);
  });
}
