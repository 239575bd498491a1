// Formats a plan for people and tools, as tw_callable_plan_json in session.h describes. Threads:
// any.
#pragma once
#include <string>

#include "framework/plan/plan.h"

namespace thalweg {

std::string PlanJson(const Plan& plan, const PlanShapes& shapes, const Signature& signature);

}  // namespace thalweg
