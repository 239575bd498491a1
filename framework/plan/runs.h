// Runs: nodes that follow each other in a plan and only fill one device's queue, so that what they enqueue can be recorded and enqueued
// again as one. Threads: one.
#pragma once
#include <vector>

#include "framework/plan/plan.h"

namespace thalweg {

// Most of what the plan computes can be recorded.
bool WorthRecording(const Plan& plan, const PlanOptions& options);
// The given order, but variables are read at the beginning where nothing comes before that, so that fewer reads lie between nodes of a run.
std::vector<int32_t> OrderForRuns(const Plan& plan);
// REQUIRES: nodes in their final order.
std::vector<PlanRun> FindRuns(const Plan& plan);

}  // namespace thalweg
