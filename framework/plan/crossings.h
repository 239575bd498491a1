// Values that are needed in other memory than they are made in, by way of queues: each has a tensor of its own, which stays until its
// copies are over, and so does not hold up whoever would use a block's memory next.
// Threads: one.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "framework/plan/plan.h"
#include "framework/plan/work_graph.h"

namespace thalweg {

class Crossings {
 public:
  // The plan gets the locations.
  Crossings(const WorkGraph& w, Plan* plan) : w_(w), plan_(*plan) {}
  // Finds them, each at least once.
  std::vector<WorkEdge> Find();
  // Some node, feed or fetch is on a device with memory of its own.
  bool any() const { return !runs_.empty(); }
  bool TakesAnywhere(size_t work, size_t input) const {
    return any() && !runs_[work].anywhere_in.empty() && runs_[work].anywhere_in[input];
  }
  // Of a node whose kernel gives values wherever they lie: see NodeRun::lands.
  std::vector<Device*> LandsOf(size_t work) const { return any() ? runs_[work].lands : std::vector<Device*>(); }
  // The other locations where an output of a device is needed.
  std::vector<int32_t> WantedOf(size_t work, size_t port) const { return any() ? wanted_[work][port] : std::vector<int32_t>(); }

 private:
  void FindLandings();
  bool Crosses(const WorkEdge& e, Device* device);
  int32_t WhereMade(const WorkEdge& e);

  const WorkGraph& w_;
  Plan& plan_;
  std::vector<NodeRun> runs_;                              // per work node; empty: nothing leaves host memory
  std::vector<std::vector<std::vector<int32_t>>> wanted_;  // per work node and output
};

}  // namespace thalweg
