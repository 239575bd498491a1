#include "framework/plan/node_work.h"

#include <string_view>

#include "framework/graph/function_shapes.h"

namespace thalweg {

bool IsLoop(const PlanNode& n) {
  if (n.kind != PlanNode::kKernel || n.part || !n.run.node) return false;
  const std::string_view role = CallRole(n.run.node->op());
  return role == "while" || role == "for";
}

bool PassesOn(const PlanNode& n) {
  const std::string_view role = n.run.node ? std::string_view(n.run.node->op().role) : std::string_view();
  return role == "identity" || role == "read_variable" || role == "recv" || role == "send";
}

uint64_t BytesTouched(const PlanNode& n, const PlanShapes& shapes) {
  uint64_t bytes = 0;
  for (int32_t v : n.in) bytes += shapes.values[size_t(v)].bytes;
  for (int32_t v : n.out) bytes += shapes.values[size_t(v)].bytes;
  return bytes;
}

bool IsLong(const PlanNode& n, const PlanShapes& shapes) {
  constexpr uint64_t kLong = 1 << 20;  // bytes touched: longer than waking a thread takes
  return IsLoop(n) || BytesTouched(n, shapes) > kLong;
}

}  // namespace thalweg
