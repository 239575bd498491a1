#include "ops/library/task.h"

#include <string_view>

#include "thalweg/op.h"

namespace thalweg::library {

std::string TaskOf(const std::string& device) {
  std::string task;
  std::string_view rest = device;
  while (!rest.empty()) {
    rest.remove_prefix(rest[0] == '/');
    const std::string_view part = rest.substr(0, rest.find('/'));
    if (part.substr(0, 4) == "job:" || part.substr(0, 5) == "task:") task += "/" + std::string(part);
    rest.remove_prefix(part.size());
  }
  return task;
}

std::string TaskOf(tw_scope* scope, tw_output value) {
  const tw_operation* maker = nullptr;
  if (const tw_graph* graph = tw_scope_graph(scope)) tw_scope_fail(scope, tw_graph_producer(graph, value, &maker, nullptr));
  return maker ? TaskOf(std::string(tw_operation_device(maker))) : "";
}

const tw_operation* After(tw_scope* scope, const char* type, const std::vector<tw_output>& inputs, const Operations& after,
                          uint32_t dtype) {
  OpenOp op(scope, type);
  tw_op_add_inputs(op, inputs.data(), uint32_t(inputs.size()));
  for (const tw_operation* before : after) {
    if (before) tw_op_add_control(op, before);
  }
  if (dtype) tw_op_set_type(op, "dtype", dtype);
  return op.EndOperation();
}

}  // namespace thalweg::library
