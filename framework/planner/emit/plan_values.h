// Adds values and locations to a plan under construction. Threads: one.
#pragma once
#include <cstdint>

#include "framework/plan/plan.h"

namespace thalweg {

// Adds the value, with the sizes of its shape. Returns its number.
int32_t AddValue(const PlanValue& v, Shape shape, Tensor constant, Plan* plan, PlanShapes* shapes);

// Returns the location of the device's memory and adds it to the plan if it is missing. Returns 0
// for NULL and for a device in host memory.
int32_t LocationOf(Device* device, Plan* plan);

}  // namespace thalweg
