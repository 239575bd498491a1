// Chooses engine, order and memory of a plan that already has its nodes and values. Threads: one.
#pragma once
#include <cstddef>
#include <functional>
#include <string>

#include "framework/base/status.h"
#include "framework/plan/plan.h"
#include "framework/planner/compile.h"

namespace thalweg {

// Returns the name of a value for messages.
using NameOfValue = std::function<std::string(size_t value)>;

// If the budget does not allow nodes side by side, tries one node after the other, then another
// order. Errors: RESOURCE_EXHAUSTED.
Status Arrange(const PlanOptions& options, const NameOfValue& name, Plan* plan, PlanShapes* shapes);

// Sets the counts of the counted engine. REQUIRES: Arrange.
void SetCounts(Plan* plan);

}  // namespace thalweg
