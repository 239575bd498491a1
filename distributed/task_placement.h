// TaskPlacement: the task of a cluster on which each node of a graph runs. State and all nodes that
// open its handle share a task; so do colocated nodes, and the nodes by which a loop's variable
// enters, goes round and leaves. A node that names no task goes to the default task, or, inside a
// loop or branch, to the task of its input. The planner of that task chooses the device.
// Threads: one at a time.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "distributed/cluster.h"
#include "distributed/flow_map.h"
#include "framework/base/status.h"
#include "framework/graph/graph.h"
#include "framework/runtime/devices/device.h"

namespace thalweg::distributed {

class TaskPlacement {
 public:
  // fallback: the index of the default task among the cluster's tasks. wish: the default for nodes
  // that name no device.
  TaskPlacement(const Graph* graph, const ClusterSpec* cluster, int32_t fallback, DeviceSpec wish)
      : graph_(graph), cluster_(cluster), fallback_(fallback), wish_(std::move(wish)), flow_(graph) {}
  // Returns the edge that replaces a value.
  using RealValue = std::function<Edge(const Edge&)>;
  // Returns whether other nodes replace a node, now or once it is needed; it then need not share a
  // task with its inputs.
  using Gone = std::function<bool(const Node&)>;
  // Examines the nodes that were added. Settled nodes stay.
  void Update(const RealValue& real, const Gone& gone);
  // Returns the index of the node's task. Errors: INVALID_ARGUMENT if nodes that must share a task
  // name different ones, or a device name is malformed; NOT_FOUND for a task that is not in the
  // cluster; FAILED_PRECONDITION if the node's state is already on another task.
  StatusOr<int32_t> TaskOf(const Node& node) const;
  // The loops and branches of the graph, as of the last update.
  const FlowMap& flow() const { return flow_; }
  // Fixes the node's task, because the node is about to run there.
  void Settle(const Node& node);

 private:
  struct Group {
    int32_t task = -1;
    Status wrong;
  };
  void JoinAll(const RealValue& real, const Gone& gone);
  void JoinInputs(const Node& n, const RealValue& real);
  void JoinLoop(const Node& n);
  int32_t Followed(int32_t group) const;
  void Join(const Node* a, const Node* b);
  int32_t Find(int32_t id) const;
  void Choose();
  void Wish(const Node& n, DeviceSpec* spec, const Node** asked, Status* wrong) const;
  StatusOr<int32_t> Pick(const DeviceSpec& spec, const Node& n) const;

  const Graph* const graph_;
  const ClusterSpec* const cluster_;
  const int32_t fallback_;
  const DeviceSpec wish_;
  FlowMap flow_;
  mutable std::vector<int32_t> parent_;
  std::map<int32_t, Group> groups_;     // by their first node
  std::map<int32_t, int32_t> settled_;  // task by node
};

}  // namespace thalweg::distributed
