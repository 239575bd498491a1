#include "framework/planner/emit/arrange.h"

#include <algorithm>

#include "framework/base/checked.h"
#include "framework/base/dtype.h"
#include "framework/base/shown.h"
#include "framework/planner/emit/batches.h"
#include "framework/planner/emit/layout.h"
#include "framework/planner/emit/order.h"
#include "framework/planner/emit/runs.h"
#include "framework/planner/emit/shape_source.h"
#include "framework/planner/memory/budget.h"

namespace thalweg {

void Arrange(const PlanOptions& o, Plan* plan, PlanShapes* shapes) {
  const bool for_memory = o.order == "smallest_peak";
  if (plan->prioritized && !for_memory) Reorder(OrderByPriority(*plan), plan, shapes);
  plan->records = WorthRecording(*plan, *shapes, o);
  if (plan->records && o.order == "auto") Reorder(OrderForRuns(*plan), plan, shapes);
  MarkHeavy(*plan, shapes);
  plan->async = NeedsCounts(*plan);
  plan->wants_counts = WantsCounts(*plan, o, *shapes);
  plan->counted = plan->wants_counts;
  if (!for_memory) {
    FormBatches(o, plan);
    LayOut(*plan, shapes);
    if (FitsBudget(o, *shapes) && !FullDevice(*plan, *shapes)) return;
    plan->batches.clear();
  }
  plan->counted = plan->async || o.engine == "counted";
  plan->in_turn = plan->counted;
  LayOut(*plan, shapes);
  if (o.order == "given" || (!for_memory && FitsBudget(o, *shapes) && !FullDevice(*plan, *shapes))) return;
  const uint64_t given = shapes->total_bytes();
  const std::vector<int32_t> order = OrderForMemory(*plan, *shapes);
  Reorder(order, plan, shapes);
  LayOut(*plan, shapes);
  plan->smallest_peak = true;
  if (shapes->total_bytes() <= given) return;
  std::vector<int32_t> back(order.size());  // small gaps may cost more than the smaller peak saves
  for (size_t k = 0; k < order.size(); ++k) back[size_t(order[k])] = int32_t(k);
  Reorder(back, plan, shapes);
  LayOut(*plan, shapes);
}

void SetCounts(Plan* plan) {
  // Queues receive their work in the plan's order, as far as it is ready.
  for (const Device* d : plan->devices) plan->prioritized = plan->prioritized || d->has_streams();
  for (size_t i = 1; plan->in_turn && i < plan->nodes.size(); ++i) {
    std::vector<int32_t>& next = plan->nodes[i - 1].next;
    if (!next.empty() && next.front() == int32_t(i)) continue;
    next.insert(next.begin(), int32_t(i));
    ++plan->nodes[i].pending;
  }
  for (size_t i = 0; i < plan->nodes.size(); ++i) {
    plan->pending.push_back(plan->nodes[i].pending);
    if (plan->nodes[i].pending == 0) plan->roots.push_back(int32_t(i));
  }
}

}  // namespace thalweg
