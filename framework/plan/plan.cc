#include "framework/plan/plan.h"

#include "framework/plan/frame_plan.h"

namespace thalweg {

Plan::Plan() = default;
Plan::~Plan() = default;

}  // namespace thalweg
