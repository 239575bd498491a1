// The order of a plan's nodes: by priority, or such that little memory is in use at once. Threads: one.
#pragma once
#include <cstdint>
#include <vector>

#include "framework/plan/plan.h"

namespace thalweg {

// Orders name every node once, each after those that it waits for.
// The given order, but of the nodes that could be next the one with the highest priority.
std::vector<int32_t> OrderByPriority(const Plan& plan);
// The best of several attempts at a small peak of planned values, one node after the other; the given order where none is better.
std::vector<int32_t> OrderForMemory(const Plan& plan, const PlanShapes& shapes);
// Puts the nodes in that order and numbers them anew.
void Reorder(const std::vector<int32_t>& order, Plan* plan, PlanShapes* shapes);

}  // namespace thalweg
