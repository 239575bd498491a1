// Learning-rate schedules, as formulas over the step, and the step itself.
#include "thalweg/schedule.h"

#include <cmath>

#include "ops/library/build.h"
#include "ops/library/options.h"
#include "thalweg/op.h"

using namespace thalweg::library;

// ---- The step ----

tw_output tw_global_step(tw_scope* scope) {
  return Protect(scope, [&]() -> tw_output {
    tw_graph* graph = tw_scope_graph(scope);
    if (!graph) return 0;
    const tw_operation* found = nullptr;
    if (tw_graph_has(graph, "global_step")) tw_status_release(tw_graph_find(graph, "global_step", &found));
    VariableInfo info;
    if (found && IsVariable(found, &info) && info.dtype == TW_INT64 && info.known_rank && info.dims.empty())
      return tw_operation_output(found, 0);
    if (found) {
      Fail(scope, TW_ALREADY_EXISTS,
           std::string("tw_global_step: 'global_step' is an operation of type ") + tw_operation_type(found) +
               " already; only a variable of that name that holds an int64 scalar would do");
      return 0;
    }
    tw_scope* top = tw_scope_create(graph, nullptr);
    tw_scope_set_place(top, tw_scope_place(scope));
    tw_scope_set_device(top, tw_scope_device(scope));
    const tw_output made = tw_variable_create(top, "global_step", tw_scope_scalar(top, TW_INT64, 0));
    tw_scope_fail(scope, tw_scope_finish(top));
    return Good(scope) ? made : 0;
  });
}

const tw_operation* tw_global_step_advance(tw_scope* scope, const tw_operation* after) {
  return Protect(scope, [&]() -> const tw_operation* {
    const tw_output step = tw_global_step(scope);
    std::vector<const tw_operation*> before;
    if (after) before.push_back(after);
    return Update(scope, "AssignAddVariableOp", {step, tw_scope_scalar(scope, TW_INT64, 1)}, before);
  });
}

// ---- Formulas ----

namespace {

// A double scalar of a graph.
struct Number {
  tw_scope* scope;
  tw_output value;
};
Number Constant(tw_scope* scope, double x) { return {scope, tw_scope_scalar(scope, TW_DOUBLE, x)}; }
Number Two(const char* op, Number a, Number b) { return {a.scope, tw_scope_op2(a.scope, op, a.value, b.value)}; }
Number One(const char* op, Number a) { return {a.scope, tw_scope_op1(a.scope, op, a.value)}; }
Number operator+(Number a, double b) { return Two("Add", a, Constant(a.scope, b)); }
Number operator-(double a, Number b) { return Two("Sub", Constant(b.scope, a), b); }
Number operator-(Number a, Number b) { return Two("Sub", a, b); }
Number operator*(Number a, Number b) { return Two("Mul", a, b); }
Number operator*(double a, Number b) { return Two("Mul", Constant(b.scope, a), b); }
Number operator/(Number a, double b) { return Two("Div", a, Constant(a.scope, b)); }
Number operator/(Number a, Number b) { return Two("Div", a, b); }
Number Min(Number a, double b) { return Two("Minimum", a, Constant(a.scope, b)); }
Number Max(Number a, double b) { return Two("Maximum", a, Constant(a.scope, b)); }
Number Raise(double base, Number exponent) { return Two("Pow", Constant(exponent.scope, base), exponent); }

Number AsNumber(tw_scope* scope, tw_output value) { return {scope, CastTo(scope, value, TW_DOUBLE)}; }
Number Step(tw_scope* scope, tw_output step) { return Max(AsNumber(scope, step), 0); }

// Returns a factor from 1 to alpha along half a cosine wave, as done goes from 0 to 1.
Number Wave(Number done, double alpha) { return (1 - alpha) * (0.5 * (One("Cos", std::acos(-1.0) * done) + 1)) + alpha; }

}  // namespace

tw_output tw_schedule_piecewise(tw_scope* scope, tw_output step, const double* boundaries, const double* values, uint32_t n_boundaries) {
  return Protect(scope, [&]() -> tw_output {
    if (!values || (n_boundaries > 0 && !boundaries))
      Fail(scope, TW_INVALID_ARGUMENT, "tw_schedule_piecewise: boundaries or values is NULL");
    if (!Good(scope)) return 0;
    const Number at = AsNumber(scope, step);
    Number rate = Constant(scope, values[0]);
    for (uint32_t i = 0; i < n_boundaries; ++i) {
      if (i > 0 && !(boundaries[i] > boundaries[i - 1])) {
        Fail(scope, TW_INVALID_ARGUMENT,
             "tw_schedule_piecewise: boundaries[" + std::to_string(i) + "] is " + Text(boundaries[i]) + " after " +
                 Text(boundaries[i - 1]) + "; boundaries must grow");
      }
      const tw_output past = tw_scope_op2(scope, "Greater", at.value, tw_scope_scalar(scope, TW_DOUBLE, boundaries[i]));
      rate.value = tw_scope_op3(scope, "SelectV2", past, tw_scope_scalar(scope, TW_DOUBLE, values[i + 1]), rate.value);
    }
    return rate.value;
  });
}

tw_output tw_schedule_exponential(tw_scope* scope, tw_output step, double initial, double steps, double factor, uint32_t staircase) {
  return Protect(scope, [&] {
    CheckAbove0(scope, "tw_schedule_exponential: steps", steps);
    CheckNotBelow0(scope, "tw_schedule_exponential: factor", factor);
    const Number periods = Step(scope, step) / steps;
    return (initial * Raise(factor, staircase ? One("Floor", periods) : periods)).value;
  });
}

void tw_polynomial_init(tw_polynomial* options) {
  if (options) *options = {sizeof(tw_polynomial), 0, 0.0001, 1, 0, 0};
}

tw_output tw_schedule_polynomial(tw_scope* scope, tw_output step, double initial, double steps, const tw_polynomial* options) {
  return Protect(scope, [&] {
    const tw_polynomial o = ReadOptions(scope, "tw_polynomial", options, tw_polynomial_init);
    CheckAbove0(scope, "tw_schedule_polynomial: steps", steps);
    CheckNotBelow0(scope, "tw_polynomial: power", o.power);
    const Number at = Step(scope, step);
    const Number cycles = o.cycle ? Max(One("Ceil", at / steps), 1) : Constant(scope, 1);
    const Number done = Min(at / (steps * cycles), 1);  // rounding may give more than 1, whose root would be NaN
    return ((initial - o.end) * Two("Pow", 1 - done, Constant(scope, o.power)) + o.end).value;
  });
}

tw_output tw_schedule_cosine(tw_scope* scope, tw_output step, double initial, double steps, double alpha) {
  return Protect(scope, [&] {
    CheckAbove0(scope, "tw_schedule_cosine: steps", steps);
    return (initial * Wave(Min(Step(scope, step), steps) / steps, alpha)).value;
  });
}

void tw_cosine_restarts_init(tw_cosine_restarts* options) {
  if (options) *options = {sizeof(tw_cosine_restarts), 0, 2, 1, 0};
}

tw_output tw_schedule_cosine_restarts(tw_scope* scope, tw_output step, double initial, double first_steps,
                                      const tw_cosine_restarts* options) {
  return Protect(scope, [&] {
    const tw_cosine_restarts o = ReadOptions(scope, "tw_cosine_restarts", options, tw_cosine_restarts_init);
    const double length_factor = o.length_factor;
    CheckAbove0(scope, "tw_schedule_cosine_restarts: first_steps", first_steps);
    if (!(length_factor >= 1 && std::isfinite(length_factor))) {
      Fail(scope, TW_INVALID_ARGUMENT,
           "tw_cosine_restarts: length_factor is " + Text(length_factor) + "; it must be finite and at least 1");
    }
    CheckNotBelow0(scope, "tw_cosine_restarts: height_factor", o.height_factor);
    const Number periods = Step(scope, step) / first_steps;
    Number restarts = One("Floor", periods), done = periods - restarts;
    if (length_factor != 1) {
      // Period i begins at (1 - f^i) / (1 - f) first periods. Rounding down the logarithm must not
      // select the previous period.
      restarts = One("Floor", One("Log", 1 - (1 - length_factor) * periods) / std::log(length_factor) + 1e-12);
      const Number length = Raise(length_factor, restarts);
      done = (periods - (1 - length) / (1 - length_factor)) / length;
    }
    const Number height = Raise(o.height_factor, restarts);
    return (initial * ((1 - o.alpha) * (height * Wave(done, 0)) + o.alpha)).value;
  });
}

tw_output tw_schedule_warm_up(tw_scope* scope, tw_output step, tw_output value, double steps, double start) {
  return Protect(scope, [&] {
    CheckAbove0(scope, "tw_schedule_warm_up: steps", steps);
    const Number done = Min(Step(scope, step), steps) / steps;
    return (AsNumber(scope, value) * ((1 - start) * done + start)).value;
  });
}
