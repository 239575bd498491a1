// Engine, order and memory of a plan whose nodes and values are there. Threads: one.
#pragma once
#include <cstddef>
#include <functional>
#include <string>

#include "framework/base/status.h"
#include "framework/plan/plan.h"

namespace thalweg {

// What messages call a value.
using NameOfValue = std::function<std::string(size_t value)>;

// What the budget does not allow side by side is tried one node after the other, then in another order. Errors: RESOURCE_EXHAUSTED.
Status Arrange(const PlanOptions& options, const NameOfValue& name, Plan* plan, PlanShapes* shapes);

// What the counted engine counts. REQUIRES: Arrange.
void SetCounts(Plan* plan);

}  // namespace thalweg
