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

namespace thalweg {
namespace {

// Returns true if the blocks fit the memory of the devices, as far as its size is known.
bool FitsDevices(const Plan& plan, const PlanShapes& shapes) {
  for (size_t d = 0; d < plan.devices.size(); ++d) {
    const uint64_t limit = plan.devices[d]->pool()->stats().limit, all = plan.devices[d]->memory();
    const uint64_t most = limit && all ? std::min(limit, all) : std::max(limit, all);
    if (most && shapes.block_bytes[d + 1] > most) return false;
  }
  return true;
}

Status CheckBudget(const PlanOptions& o, const NameOfValue& name, const Plan& plan, const PlanShapes& shapes) {
  if (FitsBudget(o, shapes)) return Status();
  std::vector<size_t> largest;
  for (size_t v = 0; v < plan.values.size(); ++v) {
    if (plan.values[v].kind == PlanValue::kBlock && plan.values[v].view_of < 0) largest.push_back(v);
  }
  auto larger = [&](size_t a, size_t b) { return shapes.values[a].bytes > shapes.values[b].bytes; };
  const size_t shown = std::min<size_t>(largest.size(), 3);
  std::partial_sort(largest.begin(), largest.begin() + int64_t(shown), largest.end(), larger);
  std::string all;
  for (size_t k = 0; k < shown; ++k) {
    const size_t v = largest[k];
    all += StrCat(k ? ", '" : "'", Shown(name(v)), "' (", DTypeName(plan.values[v].dtype),
                  ShapeText(shapes.values[v].shape.dims().data(), shapes.values[v].shape.rank()), ", ", shapes.values[v].bytes, " bytes)");
  }
  return ResourceExhausted("the values of a step need ", shapes.total_bytes(), " bytes, but the session option 'memory_budget' allows ",
                           o.memory_budget, "; the largest are ", all, "; feed less at once, leave order=auto to be chosen, or allow more");
}

}  // namespace

Status Arrange(const PlanOptions& o, const NameOfValue& name, Plan* plan, PlanShapes* shapes) {
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
    if (FitsBudget(o, *shapes) && FitsDevices(*plan, *shapes)) return Status();
    plan->batches.clear();
  }
  plan->counted = plan->async || o.engine == "counted";
  plan->in_turn = plan->counted;
  LayOut(*plan, shapes);
  if (o.order == "given" || (!for_memory && FitsBudget(o, *shapes) && FitsDevices(*plan, *shapes)))
    return CheckBudget(o, name, *plan, *shapes);
  const uint64_t given = shapes->total_bytes();
  const std::vector<int32_t> order = OrderForMemory(*plan, *shapes);
  Reorder(order, plan, shapes);
  LayOut(*plan, shapes);
  plan->smallest_peak = true;
  if (shapes->total_bytes() <= given) return CheckBudget(o, name, *plan, *shapes);
  std::vector<int32_t> back(order.size());  // small gaps may cost more than the smaller peak saves
  for (size_t k = 0; k < order.size(); ++k) back[size_t(order[k])] = int32_t(k);
  Reorder(back, plan, shapes);
  LayOut(*plan, shapes);
  return CheckBudget(o, name, *plan, *shapes);
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
