// The order of a plan's nodes: by priority, or so that little memory is in use at once. Threads:
// one.
#pragma once
#include <cstdint>
#include <vector>

#include "framework/plan/plan.h"

namespace thalweg {

// An order names every node once, after the nodes that it waits for.
// Keeps the given order, but among the nodes that could be next takes the one with the highest
// priority.
std::vector<int32_t> OrderByPriority(const Plan& plan);
// Returns the best of several attempts at a small peak of planned values when nodes run one after
// the other; the given order if no attempt is better.
std::vector<int32_t> OrderForMemory(const Plan& plan, const PlanShapes& shapes);
// Puts the nodes in that order and renumbers them.
void Reorder(const std::vector<int32_t>& order, Plan* plan, PlanShapes* shapes);

}  // namespace thalweg
