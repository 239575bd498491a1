// Budget: whether a plan's blocks fit the memory that they may take, and what to do if not. Threads:
// one.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "framework/base/status.h"
#include "framework/plan/plan.h"
#include "framework/planner/work_graph.h"

namespace thalweg {

// Bytes of planned values that are in use while each node runs, one after the other, scratch
// included.
std::vector<uint64_t> LiveBytes(const Plan& plan, const PlanShapes& shapes);
// The most bytes that some node reads, makes and works in: no order of the nodes needs less.
uint64_t LowerBoundBytes(const Plan& plan, const PlanShapes& shapes);

// Returns the first device whose memory is smaller than the plan's block there, as far as its size
// is known; NULL if there is none.
Device* FullDevice(const Plan& plan, const PlanShapes& shapes);

// Plans made from a placed work graph, so that they fit the budget and the memory of devices.
class BudgetedPlan {
 public:
  // w: emitted into.
  BudgetedPlan(WorkGraph* w, StateCache* states) : w_(w), states_(states) {}
  // Emits the plan. If it does not fit, emits others with values that are computed again or wait in
  // host memory, and takes the first that fits, and the one that needs fewest bytes if none does.
  // Errors: RESOURCE_EXHAUSTED, naming the bytes that would do and the values that hold them, if no
  // plan fits memory_budget; those of Emit.
  Status Run();
  std::unique_ptr<Plan> plan;
  std::vector<WorkEdge> edges;  // per value of the plan, as Emit gives them

 private:
  bool Fits() const;
  Status Shrunk();
  Status CheckBudget() const;
  std::string NameOf(size_t value) const;

  WorkGraph* w_;
  StateCache* states_;
};

}  // namespace thalweg
