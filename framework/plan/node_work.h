// How much work a node of a plan is, as far as that is known before it runs. Threads: any.
#pragma once
#include <cstdint>

#include "framework/plan/plan.h"

namespace thalweg {

// Returns true if the node may run for any time, however small its inputs are.
bool IsLoop(const PlanNode& n);
// Returns true if the node only forwards its input.
bool PassesOn(const PlanNode& n);
// The bytes that the node reads and writes, as far as shapes are known.
uint64_t BytesTouched(const PlanNode& n, const PlanShapes& shapes);
// Returns true if the node may run so long that nodes which become ready meanwhile should not wait
// for its thread.
bool IsLong(const PlanNode& n, const PlanShapes& shapes);

}  // namespace thalweg
