#include "framework/planner/memory/budget.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "framework/base/checked.h"
#include "framework/base/dtype.h"
#include "framework/base/shown.h"
#include "framework/planner/emit/emit.h"
#include "framework/planner/emit/shape_source.h"
#include "framework/planner/memory/shrink.h"
#include "framework/runtime/runtime.h"

namespace thalweg {
namespace {

constexpr int32_t kNowhere = -1;

// Returns for each planned value the value that first took its memory.
std::vector<int32_t> Owners(const Plan& plan, const PlanShapes& shapes) {
  std::vector<int32_t> owner(plan.values.size(), kNowhere);
  for (const PlanNode& n : plan.nodes) {
    for (int32_t v : n.out) {
      if (plan.values[size_t(v)].kind != PlanValue::kBlock) continue;
      const int32_t before = shapes.values[size_t(v)].in_place_of;
      const int32_t root = before < 0 || plan.values[size_t(before)].view_of < 0 ? before : plan.values[size_t(before)].view_of;
      owner[size_t(v)] = root < 0 ? v : owner[size_t(root)];
    }
  }
  for (size_t v = 0; v < plan.values.size(); ++v) {
    if (plan.values[v].kind == PlanValue::kBlock && plan.values[v].view_of >= 0) owner[v] = owner[size_t(plan.values[v].view_of)];
  }
  return owner;
}

struct Span {
  int32_t first = -1, last = -1;
};

// Returns for each value that first took a memory when that memory is in use.
std::vector<Span> Spans(const Plan& plan, const std::vector<int32_t>& owner) {
  std::vector<Span> spans(plan.values.size());
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    for (const auto* list : {&plan.nodes[i].out, &plan.nodes[i].in}) {
      for (int32_t v : *list) {
        if (owner[size_t(v)] < 0) continue;
        Span& s = spans[size_t(owner[size_t(v)])];
        if (s.first < 0) s.first = int32_t(i);
        s.last = int32_t(i);
      }
    }
  }
  return spans;
}

}  // namespace

std::vector<uint64_t> LiveBytes(const Plan& plan, const PlanShapes& shapes) {
  const std::vector<Span> spans = Spans(plan, Owners(plan, shapes));
  std::vector<int64_t> change(plan.nodes.size() + 1, 0);
  for (size_t v = 0; v < spans.size(); ++v) {
    if (spans[v].first < 0) continue;
    change[size_t(spans[v].first)] += int64_t(shapes.values[v].bytes);
    change[size_t(spans[v].last) + 1] -= int64_t(shapes.values[v].bytes);
  }
  std::vector<uint64_t> live;
  int64_t now = 0;
  for (size_t i = 0; i < plan.nodes.size(); ++i) live.push_back(uint64_t(now += change[i]) + shapes.scratch[i].bytes);
  return live;
}

uint64_t LowerBoundBytes(const Plan& plan, const PlanShapes& shapes) {
  const std::vector<int32_t> owner = Owners(plan, shapes);
  uint64_t bound = 0;
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    std::vector<int32_t> all;
    for (const auto* list : {&plan.nodes[i].in, &plan.nodes[i].out}) {
      for (int32_t v : *list) {
        if (owner[size_t(v)] >= 0) all.push_back(owner[size_t(v)]);
      }
    }
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    uint64_t bytes = shapes.scratch[i].bytes;
    for (int32_t v : all) bytes += shapes.values[size_t(v)].bytes;
    bound = std::max(bound, bytes);
  }
  return bound;
}

Device* FullDevice(const Plan& plan, const PlanShapes& shapes) {
  for (size_t d = 0; d < plan.devices.size(); ++d) {
    const uint64_t limit = plan.devices[d]->pool()->stats().limit, all = plan.devices[d]->memory();
    const uint64_t most = limit && all ? std::min(limit, all) : std::max(limit, all);
    if (most && shapes.block_bytes[d + 1] > most) return plan.devices[d];
  }
  return nullptr;
}

bool BudgetedPlan::Fits() const { return FitsBudget(*w_->options, *plan->shapes) && !FullDevice(*plan, *plan->shapes); }

Status BudgetedPlan::Run() {
  const auto owns_memory = [](const WorkNode& n) { return n.device && !n.device->host_memory(); };
  const bool limited = w_->options->memory_budget || std::any_of(w_->nodes.begin(), w_->nodes.end(), owns_memory);
  if (!limited) {
    ASSIGN_OR_RETURN(plan, Emit(w_, states_, &edges));
    if (plan->memory.any()) plan->memory.after = plan->shapes->total_bytes();
    return Status();
  }
  PlanNotes notes = w_->notes;  // Emit moves both into the plan, and leaves the rest of the graph as it is
  const MemoryNote memory = w_->memory;
  ASSIGN_OR_RETURN(plan, Emit(w_, states_, &edges));
  MemoryNote note = plan->memory;
  note.budget = w_->options->memory_budget;
  note.before = plan->shapes->total_bytes();
  if (!Fits()) {
    w_->notes = std::move(notes);
    w_->memory = memory;
    if (Status s = Shrunk(); !s.ok()) return s;
    note.recomputed = plan->memory.recomputed;
    note.swapped = plan->memory.swapped;
    note.recompute_ns = plan->memory.recompute_ns;
    note.swap_ns = plan->memory.swap_ns;
    note.step_ns = plan->memory.step_ns;
  }
  note.after = plan->shapes->total_bytes();
  note.ordered = note.budget && (plan->smallest_peak || (plan->wants_counts && (plan->in_turn || !plan->counted)));
  plan->memory = std::move(note);
  if (!FitsBudget(*w_->options, *plan->shapes)) return CheckBudget();
  const MemoryNote& done = plan->memory;
  if (!done.recomputed.empty() || !done.swapped.empty()) {
    w_->runtime().Log(1, StrCat("a plan runs ", done.recomputed.size(), " nodes a second time and keeps ", done.swapped.size(),
                                " values in host memory, so that its values take ", done.after, " bytes and not ", done.before));
  }
  return Status();
}

// REQUIRES: *w_ is the placed graph; plan and edges are those of the graph as it is.
Status BudgetedPlan::Shrunk() {
  const WorkGraph placed = *w_;
  const auto& off = w_->options->disabled_passes;
  const bool recompute = w_->options->optimize && std::find(off.begin(), off.end(), "recompute") == off.end();
  ShrinkGoal goal;
  goal.recompute = recompute;
  for (size_t i = 0; i < plan->nodes.size(); ++i) {
    const PlanNode& n = plan->nodes[i];
    if (n.kind == PlanNode::kKernel && n.run.node) goal.scratch[n.run.node] = plan->shapes->scratch[i].bytes;
  }
  Device* full = FullDevice(*plan, *plan->shapes);
  uint64_t most = full ? full->memory() : w_->options->memory_budget;
  if (const uint64_t limit = full ? full->pool()->stats().limit : 0; limit && (limit < most || most == 0)) most = limit;
  if (!FitsBudget(*w_->options, *plan->shapes)) {
    full = nullptr;
    most = w_->options->memory_budget;
  }
  goal.device = full;
  // The blocks have gaps that the estimate does not know, so a goal may have to be below the budget.
  for (const double part : {1.0, 0.93, 0.85, 0.75, 0.6, 0.4, 0.0}) {
    WorkGraph tried = placed;
    goal.bytes = std::max<uint64_t>(uint64_t(double(most) * part), 1);
    std::vector<WorkEdge> tried_edges;
    Status s = Shrink(&tried, goal);
    if (s.ok() && !tried.memory.any()) continue;
    StatusOr<std::unique_ptr<Plan>> other = s.ok() ? Emit(&tried, states_, &tried_edges) : StatusOr<std::unique_ptr<Plan>>(s);
    if (!other.ok()) {
      if (w_->options->memory_budget) return other.status();
      continue;  // nobody asked for less memory, and the plan as it is may still find room
    }
    if ((*other)->shapes->total_bytes() >= plan->shapes->total_bytes()) continue;
    plan = *std::move(other);
    edges = std::move(tried_edges);
    *w_ = std::move(tried);
    if (Fits()) break;
  }
  return Status();
}

std::string BudgetedPlan::NameOf(size_t value) const {
  const WorkEdge& e = edges[value];
  const WorkNode& n = w_->nodes[size_t(e.node)];
  return n.node ? Edge{n.node, e.port}.text() : w_->signature->feeds[size_t(n.feed)].text();
}

Status BudgetedPlan::CheckBudget() const {
  const PlanShapes& shapes = *plan->shapes;
  const std::vector<uint64_t> live = LiveBytes(*plan, shapes);
  if (live.empty()) {  // arguments that a function returns
    return ResourceExhausted("the values of a step need ", shapes.total_bytes(), " bytes, but the session option 'memory_budget' allows ",
                             w_->options->memory_budget);
  }
  const auto at = int32_t(std::max_element(live.begin(), live.end()) - live.begin());
  const std::vector<int32_t> owner = Owners(*plan, shapes);
  const std::vector<Span> spans = Spans(*plan, owner);
  std::vector<size_t> held;
  for (size_t v = 0; v < spans.size(); ++v) {
    if (spans[v].first >= 0 && spans[v].first <= at && at <= spans[v].last) held.push_back(v);
  }
  std::stable_sort(held.begin(), held.end(), [&](size_t a, size_t b) { return shapes.values[a].bytes > shapes.values[b].bytes; });
  std::string all;
  constexpr size_t kMost = 5;
  for (size_t k = 0; k < held.size() && k < kMost; ++k) {
    const size_t v = held[k];
    all += StrCat(k ? ", '" : "'", Shown(NameOf(v)), "' (", DTypeName(plan->values[v].dtype),
                  ShapeText(shapes.values[v].shape.dims().data(), shapes.values[v].shape.rank()), ", ", shapes.values[v].bytes, " bytes)");
  }
  if (held.size() > kMost) all += StrCat(" and ", held.size() - kMost, " more");
  const MemoryNote& done = plan->memory;
  const bool tried = !done.recomputed.empty() || !done.swapped.empty();
  const PlanNode& n = plan->nodes[size_t(at)];
  return ResourceExhausted("the values of a step need ", shapes.total_bytes(), " bytes, but the session option 'memory_budget' allows ",
                           w_->options->memory_budget,
                           tried ? StrCat("; that is with ", done.recomputed.size(), " nodes that run twice and ", done.swapped.size(),
                                          " values in host memory, instead of ", done.before)
                                 : std::string(),
                           "; when ", n.title, " most is in use by ", all, "; feed less at once, set memory_budget=", shapes.total_bytes(),
                           ", or leave order=auto and the pass 'recompute' to be chosen");
}

}  // namespace thalweg
