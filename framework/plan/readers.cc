#include "framework/plan/readers.h"

#include <algorithm>
#include <vector>

namespace thalweg {
namespace {

// Its kernel's call is all there is to do, unless it reads values that somebody has to let go.
bool OnlyCalls(const Plan& plan, const PlanNode& n) {
  if (n.kind != PlanNode::kKernel || n.dynamic || n.given || n.run.async || n.run.opens() || !n.copied_in.empty()) return false;
  return !n.run.kernel->spec.may_block && n.run.device->host_memory() && std::all_of(n.out.begin(), n.out.end(), [&](int32_t v) {
    const PlanValue::Kind kind = plan.values[size_t(v)].kind;
    return kind == PlanValue::kBlock || kind == PlanValue::kPassed;
  });
}

// One node after the other, the last reader of a value lets it go. Of those before it only they count that have more to do than to call
// their kernel, who may want to know whether they are the last: so a value that a thousand small nodes read costs one of them something.
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
    // What is fetched stays until the step is over, whoever has read it.
    std::erase_if(n.held_in, [&](int32_t v) { return plan->values[size_t(v)].fetched; });
  }
}

void MarkSimple(Plan* plan) {
  LeaveToLastReader(plan);
  for (PlanNode& n : plan->nodes) n.simple = n.held_in.empty() && OnlyCalls(*plan, n);
}

}  // namespace thalweg
