// Where the planned values of a step lie, and which engine suits a plan: what depends on sizes. Threads: one.
#pragma once
#include "framework/plan/plan.h"

namespace thalweg {

// Fills in offsets, pairs in place, bytes of blocks, the peak. REQUIRES: bytes of values and scratch; nodes in their final order.
void LayOut(const Plan& plan, PlanShapes* shapes);

// The node only hands on what it is given.
bool PassesOn(const PlanNode& n);
// Fills in which nodes are heavy.
void MarkHeavy(const Plan& plan, PlanShapes* shapes);
// Some kernel ends elsewhere, which the fixed engine cannot wait for.
bool NeedsCounts(const Plan& plan);
// The engine that the options ask for, or that suits. REQUIRES: MarkHeavy.
bool WantsCounts(const Plan& plan, const PlanOptions& options, const PlanShapes& shapes);

}  // namespace thalweg
