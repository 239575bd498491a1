// TaskPlacement: on which task of a cluster each node of a graph runs. State and all nodes that open its handle share a task, and so do
// nodes that are colocated, and the nodes by which a loop's variable comes in, goes round and leaves. A node that names no task goes to the
// default one, or, inside of a loop or branch, to that of what it reads. Where on its task a node runs is for that task's planner.
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
#include "framework/runtime/device.h"

namespace thalweg::distributed {

class TaskPlacement {
 public:
  // fallback: the index, among the cluster's tasks, of the default task. wish: what nodes ask for that say nothing themselves.
  TaskPlacement(const Graph* graph, const ClusterSpec* cluster, int32_t fallback, DeviceSpec wish)
      : graph_(graph), cluster_(cluster), fallback_(fallback), wish_(std::move(wish)), flow_(graph) {}
  // What is read in the place of a value.
  using RealValue = std::function<Edge(const Edge&)>;
  // Whether others run in the place of a node, which need not share a task with what it reads, now or when it is needed.
  using Gone = std::function<bool(const Node&)>;
  // Looks at the nodes that were added. What was settled stays where it is.
  void Update(const RealValue& real, const Gone& gone);
  // The index of its task. Errors: INVALID_ARGUMENT where nodes that must share a task ask for different ones, or a device's name cannot be
  // read; NOT_FOUND for a task that the cluster has not; FAILED_PRECONDITION where its state is on another task already.
  StatusOr<int32_t> TaskOf(const Node& node) const;
  // The loops and branches of the graph, as of the last update.
  const FlowMap& flow() const { return flow_; }
  // The node is about to run there: from now on it stays.
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
