// Places the planned values of a step in memory and chooses the engine for a plan: the decisions
// that depend on sizes. Threads: one.
#pragma once
#include "framework/plan/plan.h"

namespace thalweg {

// Sets offsets, in-place pairs, the bytes of blocks and the peak. REQUIRES: bytes of values and
// scratch; nodes in their final order.
void LayOut(const Plan& plan, PlanShapes* shapes);

// Returns true if the node only forwards its input.
bool PassesOn(const PlanNode& n);
// The bytes that the node reads and writes, as far as shapes are known.
uint64_t BytesTouched(const PlanNode& n, const PlanShapes& shapes);
// Returns true if the node may run so long that nodes which become ready meanwhile should not wait
// for its thread.
bool IsLong(const PlanNode& n, const PlanShapes& shapes);
// Marks the heavy nodes.
void MarkHeavy(const Plan& plan, PlanShapes* shapes);
// Returns true if some kernel completes asynchronously, which the fixed engine cannot wait for.
bool NeedsCounts(const Plan& plan);
// Returns true if the options ask for the counted engine, or the plan suits it. REQUIRES:
// MarkHeavy.
bool WantsCounts(const Plan& plan, const PlanOptions& options, const PlanShapes& shapes);

}  // namespace thalweg
