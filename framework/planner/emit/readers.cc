#include "framework/planner/emit/readers.h"

#include <algorithm>
#include <vector>

namespace thalweg {
namespace {

// Returns true if the node only calls its kernel; it may still have to release values that it
// reads.
bool OnlyCalls(const Plan& plan, const PlanNode& n) {
  if (n.kind != PlanNode::kKernel || n.dynamic || n.given || n.run.async || n.run.opens() || !n.copied_in.empty()) return false;
  return !n.run.kernel->spec.may_block && n.run.device->host_memory() && std::all_of(n.out.begin(), n.out.end(), [&](int32_t v) {
    const PlanValue::Kind kind = plan.values[size_t(v)].kind;
    return kind == PlanValue::kBlock || kind == PlanValue::kPassed;
  });
}

// If nodes run one after the other, the last reader of a value releases it. Of the earlier readers,
// only those count that do more than call their kernel, since these may ask whether they are the
// last. So a value that a thousand small nodes read costs only one of them the work.
void LeaveToLastReader(Plan* plan) {
  if (plan->counted || !plan->batches.empty()) return;
  std::vector<int32_t> last(plan->values.size(), -1);
  for (size_t i = 0; i < plan->nodes.size(); ++i) {
    for (int32_t v : plan->nodes[i].held_in) last[size_t(v)] = int32_t(i);
  }
  for (size_t i = 0; i < plan->nodes.size(); ++i) {
    PlanNode& n = plan->nodes[i];
    if (n.held_in.empty() || !OnlyCalls(*plan, n)) continue;
    std::erase_if(n.held_in, [&](int32_t v) {
      const bool leaves = last[size_t(v)] != int32_t(i);
      if (leaves) --plan->values[size_t(v)].readers;
      return leaves;
    });
  }
}

}  // namespace

void CountReaders(Plan* plan) {
  for (PlanNode& n : plan->nodes) {
    for (int32_t v : n.in) {
      if (plan->values[size_t(v)].kind == PlanValue::kHeld) n.held_in.push_back(v);
    }
    std::sort(n.held_in.begin(), n.held_in.end());
    n.held_in.erase(std::unique(n.held_in.begin(), n.held_in.end()), n.held_in.end());
    for (int32_t v : n.held_in) ++plan->values[size_t(v)].readers;
    // A fetch stays until the step ends, whatever node reads it.
    std::erase_if(n.held_in, [&](int32_t v) { return plan->values[size_t(v)].fetched; });
  }
}

void MarkSimple(Plan* plan) {
  LeaveToLastReader(plan);
  if (plan->check != ValueCheck::kOff) return;  // every node also checks its results
  for (PlanNode& n : plan->nodes) n.simple = n.held_in.empty() && OnlyCalls(*plan, n);
}

}  // namespace thalweg
