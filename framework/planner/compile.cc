// Compiles a graph and a signature to a plan: runs the passes in turn, then emits the arrays.
#include "framework/planner/compile.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "framework/plan/frame_plan.h"
#include "framework/plan/plan.h"
#include "framework/planner/emit/emit.h"
#include "framework/planner/emit/emit_frames.h"
#include "framework/planner/emit/shape_source.h"
#include "framework/planner/memory/budget.h"
#include "framework/planner/passes/read_once.h"
#include "framework/planner/work_graph.h"

namespace thalweg {

static void TakeFixed(WorkGraph* w, Plan* plan) {
  plan->fixed = std::move(w->fixed);
  plan->seen = w->seen;
  plan->accelerators_first = w->accelerators_first;
}

StatusOr<std::unique_ptr<Plan>> CompilePlan(Graph& graph, const Signature& signature, const std::vector<Shape>& feed_shapes,
                                            const PlanOptions& options, StateCache* states) {
  auto source = std::make_unique<ShapeSource>();
  source->signature = signature;
  source->options = options;
  WorkGraph& w = source->w;
  w.options = &source->options;
  w.feed_shapes = feed_shapes;
  w.states = states;
  RETURN_IF_ERROR(BuildWorkGraph(&graph, source->signature, &w));
  for (const Pass& pass : Passes()) {
    const auto& off = options.disabled_passes;
    if (pass.optional && (!options.optimize || std::find(off.begin(), off.end(), pass.name) != off.end())) continue;
    RETURN_IF_ERROR(pass.run(&w));
  }
  std::unique_ptr<Plan> plan;
  if (w.flow) {
    ASSIGN_OR_RETURN(plan, EmitFrames(&w, states));
    MarkCopiedFeeds(plan.get());
    TakeFixed(&w, plan.get());
    return plan;
  }
  BudgetedPlan budgeted(&w, states);
  RETURN_IF_ERROR(budgeted.Run());
  plan = std::move(budgeted.plan);
  MarkCopiedFeeds(plan.get());
  TakeFixed(&w, plan.get());
  if (!MayHaveOtherShapes(w)) return plan;
  source->edges = std::move(budgeted.edges);
  plan->source = std::move(source);
  return plan;
}

}  // namespace thalweg
