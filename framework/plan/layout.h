// Where the planned values of a step lie, and which engine suits a plan: what depends on sizes. Threads: one.
#pragma once
#include "framework/plan/plan.h"

namespace thalweg {

// Fills in offsets, pairs in place, bytes of blocks, the peak. REQUIRES: bytes of values and scratch; nodes in their final order.
void LayOut(const Plan& plan, PlanShapes* shapes);

// The node only hands on what it is given.
bool PassesOn(const PlanNode& n);
// What it reads and writes, as far as the shapes are known.
uint64_t BytesTouched(const PlanNode& n, const PlanShapes& shapes);
// It may take so long that what becomes ready meanwhile should not wait for its thread.
bool IsLong(const PlanNode& n, const PlanShapes& shapes);
// Fills in which nodes are heavy.
void MarkHeavy(const Plan& plan, PlanShapes* shapes);
// Some kernel ends elsewhere, which the fixed engine cannot wait for.
bool NeedsCounts(const Plan& plan);
// The engine that the options ask for, or that suits. REQUIRES: MarkHeavy.
bool WantsCounts(const Plan& plan, const PlanOptions& options, const PlanShapes& shapes);

}  // namespace thalweg
