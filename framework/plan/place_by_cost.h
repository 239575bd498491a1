// Which device each group of nodes gets by what kernels and copies take (list_placer.h). Threads: one.
#pragma once
#include <cstdint>
#include <vector>

#include "framework/plan/work_graph.h"

namespace thalweg {

struct PlacedGroup {
  std::vector<int32_t> nodes;     // work nodes
  std::vector<Device*> devices;   // that it may run on, the simplest choice first; at least one
  Device* device = nullptr;       // the choice
  int64_t ns = 0, other_ns = -1;  // what its kernels take there, and on the best of the others; -1: there is none
};

// Chooses for all groups together.
void PlaceByCost(const WorkGraph& w, std::vector<PlacedGroup>* groups);

}  // namespace thalweg
