#include "framework/planner/emit/plan_values.h"

#include <algorithm>
#include <utility>

#include "framework/planner/emit/shape_source.h"

namespace thalweg {

int32_t AddValue(const PlanValue& v, Shape shape, Tensor constant, Plan* plan, PlanShapes* shapes) {
  PlanShapes::Value sized;
  sized.shape = std::move(shape);
  sized.constant = std::move(constant);
  SetSizes(v.dtype, &sized);
  plan->values.push_back(v);
  shapes->values.push_back(std::move(sized));
  return int32_t(plan->values.size()) - 1;
}

int32_t LocationOf(Device* device, Plan* plan) {
  if (!device || device->host_memory()) return 0;
  const auto it = std::find(plan->devices.begin(), plan->devices.end(), device);
  const auto at = int32_t(it - plan->devices.begin());
  if (it == plan->devices.end()) plan->devices.push_back(device);
  return at + 1;
}

}  // namespace thalweg
