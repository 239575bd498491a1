// Moving averages of variables: shadow variables that follow them.
#include "thalweg/average.h"

#include <algorithm>

#include "ops/library/build.h"
#include "ops/library/options.h"
#include "thalweg/op.h"

using namespace thalweg::library;

void tw_moving_averages_init(tw_moving_averages* options) {
  if (options) *options = {sizeof(tw_moving_averages), 0, 0.999, 0};
}

namespace {

// Returns the value of the variable's own initial assignment, so that one run of the initializer
// gives both the same random numbers.
tw_output InitialValue(tw_scope* scope, const VariableInfo& info) {
  const tw_graph* graph = tw_scope_graph(scope);
  const tw_operation* assign = nullptr;
  if (tw_graph_has(graph, (info.operation + "/Assign").c_str()))
    tw_status_release(tw_graph_find(graph, (info.operation + "/Assign").c_str(), &assign));
  if (assign && std::string(tw_operation_type(assign)) != "AssignVariableOp") assign = nullptr;
  if (graph && !assign)
    Fail(scope, TW_INVALID_ARGUMENT,
         "tw_moving_averages_add: variable '" + info.name + "' has no initial assignment; make it with tw_variable_create");
  return assign ? tw_operation_input(assign, 1) : 0;
}

// Returns min(decay, (1 + updates) / (10 + updates)), or decay.
tw_output Decay(tw_scope* scope, const tw_moving_averages& o) {
  const auto number = [&](double x) { return tw_scope_scalar(scope, TW_DOUBLE, x); };
  if (o.updates == 0) return number(o.decay);
  const tw_output n = CastTo(scope, o.updates, TW_DOUBLE);
  const tw_output early = tw_scope_op2(scope, "Div", tw_scope_op2(scope, "Add", n, number(1)), tw_scope_op2(scope, "Add", n, number(10)));
  return tw_scope_op2(scope, "Minimum", early, number(o.decay));
}

tw_output ReadAfter(tw_scope* scope, tw_output variable, uint32_t dtype, const tw_operation* after) {
  OpenOp read(scope, "ReadVariableOp");
  tw_op_add_input(read, variable);
  tw_op_set_type(read, "dtype", dtype);
  if (after) tw_op_add_control(read, after);
  return read.End();
}

bool CheckLists(tw_scope* scope, const char* function, const void* a, const void* b, uint32_t n) {
  if (n > 0 && a && b) return true;
  Fail(scope, TW_INVALID_ARGUMENT, std::string(function) + (n > 0 ? ": a list is NULL" : ": there are no variables"));
  return false;
}

}  // namespace

const tw_operation* tw_moving_averages_add(tw_scope* scope, const tw_output* variables, uint32_t n, const tw_moving_averages* options,
                                           const tw_operation* after, tw_output* out_averages) {
  return Protect(scope, [&]() -> const tw_operation* {
    const tw_moving_averages o = ReadOptions(scope, "tw_moving_averages", options, tw_moving_averages_init);
    CheckRange(scope, "tw_moving_averages: decay", o.decay, 0, 1);
    if (out_averages) std::fill(out_averages, out_averages + n, 0);
    if (!CheckLists(scope, "tw_moving_averages_add", variables, out_averages, n)) return nullptr;
    const tw_output rest = tw_scope_op2(scope, "Sub", tw_scope_scalar(scope, TW_DOUBLE, 1), Decay(scope, o));
    std::vector<const tw_operation*> updates;
    for (uint32_t i = 0; i < n; ++i) {
      VariableInfo info;
      if (!Inspect(scope, variables[i], &info)) continue;
      if (!IsReal(info.dtype)) {
        Fail(scope, TW_INVALID_ARGUMENT,
             "tw_moving_averages_add: variable '" + info.name + "' holds " + tw_dtype_name(info.dtype) +
                 "; averages are of half, bfloat16, float or double");
      }
      const tw_output average = Beside(scope, info, "ExponentialMovingAverage", InitialValue(scope, info));
      const tw_output behind =
          tw_scope_op2(scope, "Sub", tw_variable_read(scope, average), ReadAfter(scope, variables[i], info.dtype, after));
      const tw_output less = tw_scope_op2(scope, "Mul", behind, CastTo(scope, rest, info.dtype));
      updates.push_back(Update(scope, "AssignSubVariableOp", {average, less}));
      out_averages[i] = Good(scope) ? average : 0;
    }
    return tw_scope_group(scope, nullptr, updates.data(), uint32_t(updates.size()));
  });
}

const tw_operation* tw_moving_averages_swap(tw_scope* scope, const tw_output* variables, const tw_output* averages, uint32_t n) {
  return Protect(scope, [&]() -> const tw_operation* {
    if (!CheckLists(scope, "tw_moving_averages_swap", variables, averages, n)) return nullptr;
    std::vector<const tw_operation*> swaps;
    for (uint32_t i = 0; i < n; ++i) {
      // Both are read before either is written.
      const tw_output old = tw_variable_read(scope, variables[i]), average = tw_variable_read(scope, averages[i]);
      const tw_operation *read_old = nullptr, *read_average = nullptr;
      if (!Good(scope)) return nullptr;
      tw_scope_fail(scope, tw_graph_producer(tw_scope_graph(scope), old, &read_old, nullptr));
      tw_scope_fail(scope, tw_graph_producer(tw_scope_graph(scope), average, &read_average, nullptr));
      swaps.push_back(Update(scope, "AssignVariableOp", {variables[i], average}, {read_old}));
      swaps.push_back(Update(scope, "AssignVariableOp", {averages[i], old}, {read_average}));
    }
    return tw_scope_group(scope, nullptr, swaps.data(), uint32_t(swaps.size()));
  });
}
