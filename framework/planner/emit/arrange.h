// Chooses engine, order and memory of a plan that already has its nodes and values. Threads: one.
#pragma once
#include "framework/plan/plan.h"
#include "framework/planner/compile.h"

namespace thalweg {

// If the budget does not allow nodes side by side, tries one node after the other, then another
// order. The plan may still need more than the budget (budget.h).
void Arrange(const PlanOptions& options, Plan* plan, PlanShapes* shapes);

// Sets the counts of the counted engine. REQUIRES: Arrange.
void SetCounts(Plan* plan);

}  // namespace thalweg
