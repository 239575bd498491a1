// Chooses the device of each group of nodes by the costs of kernels and copies (list_placer.h).
// Threads: one.
#pragma once
#include <cstdint>
#include <vector>

#include "framework/planner/work_graph.h"

namespace thalweg {

struct PlacedGroup {
  std::vector<int32_t> nodes;     // work nodes
  std::vector<Device*> devices;   // devices that the group may run on, the simplest choice first; at least one
  Device* device = nullptr;       // the chosen device
  int64_t ns = 0, other_ns = -1;  // cost of its kernels there and on the best of the other devices; -1 if there is none
};

// Chooses for all groups together.
void PlaceByCost(const WorkGraph& w, std::vector<PlacedGroup>* groups);

}  // namespace thalweg
