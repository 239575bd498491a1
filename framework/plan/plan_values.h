// How a plan that is being made gets its values and the memories that they lie in. Threads: one.
#pragma once
#include <cstdint>

#include "framework/plan/plan.h"

namespace thalweg {

// Adds the value, with the sizes of its shape; answers its number.
int32_t AddValue(const PlanValue& v, Shape shape, Tensor constant, Plan* plan, PlanShapes* shapes);

// The location of the device's memory, which joins the plan's if it is not among them. NULL, and a device in host memory: 0.
int32_t LocationOf(Device* device, Plan* plan);

}  // namespace thalweg
