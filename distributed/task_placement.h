// TaskPlacement: on which task of a cluster each node of a graph runs. State and all nodes that open its handle share a task, and so do
// nodes that are colocated, and all that is inside one loop or one branch. A node that names no task goes to the default one. Where on its
// task a node runs is for that task's planner. Threads: one at a time.
#pragma once
#include <cstdint>
#include <map>
#include <vector>

#include "distributed/cluster.h"
#include "framework/base/status.h"
#include "framework/graph/graph.h"
#include "framework/runtime/device.h"

namespace thalweg::distributed {

class TaskPlacement {
 public:
  // fallback: the index, among the cluster's tasks, of the default task. wish: what nodes ask for that say nothing themselves.
  TaskPlacement(const Graph* graph, const ClusterSpec* cluster, int32_t fallback, DeviceSpec wish)
      : graph_(graph), cluster_(cluster), fallback_(fallback), wish_(std::move(wish)) {}
  // Looks at the nodes that were added. What was settled stays where it is.
  void Update();
  // The index of its task. Errors: INVALID_ARGUMENT where nodes that must share a task ask for different ones, or a device's name cannot be
  // read; NOT_FOUND for a task that the cluster has not; FAILED_PRECONDITION where its state is on another task already.
  StatusOr<int32_t> TaskOf(const Node& node) const;
  // The node is about to run there: from now on it stays.
  void Settle(const Node& node);

 private:
  struct Group {
    int32_t task = -1;
    Status wrong;
  };
  void JoinAll();
  void JoinInputs(const Node& n);
  void JoinLevels(const Node& n);
  void Join(const Node* a, const Node* b);
  int32_t Find(int32_t id) const;
  void Choose();
  void Wish(const Node& n, DeviceSpec* spec, const Node** asked, Status* wrong) const;
  StatusOr<int32_t> Pick(const DeviceSpec& spec, const Node& n) const;

  const Graph* const graph_;
  const ClusterSpec* const cluster_;
  const int32_t fallback_;
  const DeviceSpec wish_;
  mutable std::vector<int32_t> parent_;
  std::vector<int32_t> level_;          // in how many loops and branches a node's outputs are
  std::map<int32_t, Group> groups_;     // by their first node
  std::map<int32_t, int32_t> settled_;  // task by node
};

}  // namespace thalweg::distributed
