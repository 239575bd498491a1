// Crossings: values that are needed in other memory than the one they are made in, and that queues
// copy there. Each has a tensor of its own, which stays until its copies have ended, so the next
// user of a block's memory need not wait.
// Threads: one.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "framework/plan/plan.h"
#include "framework/planner/work_graph.h"

namespace thalweg {

class Crossings {
 public:
  // Adds the locations to the plan.
  Crossings(const WorkGraph& w, Plan* plan) : w_(w), plan_(*plan) {}
  // Finds the crossing values, each at least once.
  std::vector<WorkEdge> Find();
  // Returns true if some node, feed or fetch is on a device with memory of its own.
  bool any() const { return !runs_.empty(); }
  bool TakesAnywhere(size_t work, size_t input) const {
    return any() && !runs_[work].anywhere_in.empty() && runs_[work].anywhere_in[input];
  }
  // For a node whose kernel may give values in any memory: see NodeRun::lands.
  std::vector<Device*> LandsOf(size_t work) const { return any() ? runs_[work].lands : std::vector<Device*>(); }
  // The other locations where a device node's output is needed.
  std::vector<int32_t> WantedOf(size_t work, size_t port) const { return any() ? wanted_[work][port] : std::vector<int32_t>(); }

 private:
  void FindLandings();
  bool Crosses(const WorkEdge& e, Device* device);
  int32_t WhereMade(const WorkEdge& e);

  const WorkGraph& w_;
  Plan& plan_;
  std::vector<NodeRun> runs_;                              // per work node; empty if no value leaves host memory
  std::vector<std::vector<std::vector<int32_t>>> wanted_;  // per work node and output
};

}  // namespace thalweg
