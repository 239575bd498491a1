// Variables: a handle, its first assignment, and the list of a graph's variables.
#include "thalweg/variable.h"

#include <memory>
#include <string>

#include "ops/library/build.h"
#include "thalweg/function.h"
#include "thalweg/op.h"
#include "thalweg/status.h"

using namespace thalweg::library;

static const char kInitialSuffix[] = "/Assign";

tw_output tw_variable_create(tw_scope* scope, const char* name, tw_output initial) {
  return Protect(scope, [&]() -> tw_output {
    if (Good(scope) && (!name || !*name)) Fail(scope, TW_INVALID_ARGUMENT, "tw_variable_create: name is NULL or empty");
    tw_graph* graph = tw_scope_graph(scope);
    if (graph && tw_graph_is_body(graph))
      Fail(scope, TW_INVALID_ARGUMENT,
           std::string("variable '") + name + "' is made inside a function; make it outside, where initializers and savers find it");
    if (!Good(scope)) return 0;
    const ValueInfo info = Describe(scope, initial);

    const std::string full = std::string(tw_scope_prefix(scope)) + name;
    OpenOp handle(scope, "VarHandleOp", name);
    tw_op_set_string(handle, "shared_name", full.data(), full.size());
    tw_op_set_type(handle, "dtype", info.dtype);
    tw_op_set_shape(handle, "shape", info.shape.dims, info.shape.rank);
    const tw_output variable = handle.End();

    OpenOp assign(scope, "AssignVariableOp", (std::string(name) + kInitialSuffix).c_str());
    tw_op_add_input(assign, variable);
    tw_op_add_input(assign, initial);
    assign.EndOperation();
    return Good(scope) ? variable : 0;
  });
}

tw_output tw_variable_read(tw_scope* scope, tw_output variable) {
  return Protect(scope, [&]() -> tw_output {
    VariableInfo info;
    if (!Inspect(scope, variable, &info)) return 0;
    if (info.reference) return tw_scope_op1(scope, "Identity", variable);
    return Typed(scope, "ReadVariableOp", {variable}, "dtype", info.dtype);
  });
}

const tw_operation* tw_variable_assign(tw_scope* scope, tw_output variable, tw_output value) {
  return Protect(scope, [&]() -> const tw_operation* {
    VariableInfo info;
    return Inspect(scope, variable, &info) ? Assign(scope, variable, info, value) : nullptr;
  });
}

const tw_operation* tw_variable_initializer(tw_scope* scope, const char* name) {
  return Protect(scope, [&]() -> const tw_operation* {
    const tw_graph* graph = tw_scope_graph(scope);
    std::vector<const tw_operation*> assignments;
    for (uint32_t i = 0; i < tw_graph_count(graph); ++i) {
      const tw_operation* assign = tw_graph_operation(graph, i);
      VariableInfo info;
      const tw_operation* variable = nullptr;
      const std::string type = tw_operation_type(assign);
      if (type != "AssignVariableOp" && type != "Assign") continue;
      tw_scope_fail(scope, tw_graph_producer(graph, tw_operation_input(assign, 0), &variable, nullptr));
      if (!variable || !IsVariable(variable, &info)) continue;
      if (tw_operation_name(assign) == info.operation + kInitialSuffix) assignments.push_back(assign);
    }
    return tw_scope_group(scope, name, assignments.data(), uint32_t(assignments.size()));
  });
}

struct tw_variables {
  std::vector<tw_output> handles;
  std::vector<VariableInfo> infos;
};

tw_status* tw_variables_create(tw_graph* graph, tw_variables** out_variables) {
  if (!graph || !out_variables) return tw_status_create(TW_INVALID_ARGUMENT, "tw_variables_create: graph or out_variables is NULL");
  try {
    auto list = std::make_unique<tw_variables>();
    for (uint32_t i = 0; i < tw_graph_count(graph); ++i) {
      VariableInfo info;
      const tw_operation* operation = tw_graph_operation(graph, i);
      if (!IsVariable(operation, &info)) continue;
      list->handles.push_back(tw_operation_output(operation, 0));
      list->infos.push_back(std::move(info));
    }
    *out_variables = list.release();
    return nullptr;
  } catch (const std::bad_alloc&) {
    return tw_status_create(TW_RESOURCE_EXHAUSTED, "out of host memory for a list of variables");
  }
}

void tw_variables_destroy(tw_variables* variables) { delete variables; }

uint32_t tw_variables_count(const tw_variables* variables) { return variables ? uint32_t(variables->handles.size()) : 0; }

tw_output tw_variables_handle(const tw_variables* variables, uint32_t i) {
  return i < tw_variables_count(variables) ? variables->handles[i] : 0;
}

const char* tw_variables_name(const tw_variables* variables, uint32_t i) {
  return i < tw_variables_count(variables) ? variables->infos[i].name.c_str() : nullptr;
}

tw_status* tw_variables_describe(const tw_variables* variables, uint32_t i, uint32_t* out_dtype, tw_shape* out_shape) {
  if (i >= tw_variables_count(variables)) return tw_status_create(TW_OUT_OF_RANGE, "tw_variables_describe: past the end of the list");
  const VariableInfo& info = variables->infos[i];
  if (out_dtype) *out_dtype = info.dtype;
  if (out_shape) *out_shape = {info.dims.data(), info.known_rank ? int32_t(info.dims.size()) : -1, 0};
  return nullptr;
}
