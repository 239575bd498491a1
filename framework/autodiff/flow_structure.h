// FlowStructure: the branches and loops of a graph made of Switch, Merge, Enter, Exit and
// NextIteration (graph/flow.h). It finds the condition under which a value exists, and the loop in
// which it has one value per iteration.
// Threads: one.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "framework/base/status.h"
#include "framework/graph/flow.h"
#include "framework/graph/graph.h"

namespace thalweg {

// One side of a condition. region -1 means no condition.
struct FlowBranch {
  int32_t region = -1, side = 0;
  bool operator==(const FlowBranch&) const = default;
};

struct FlowPlace {
  int32_t frame = 0;
  FlowBranch branch;  // the innermost one in the frame
  bool operator==(const FlowPlace&) const = default;
};

// The nodes that one value decides in one place.
struct FlowRegion {
  FlowPlace outer;
  Edge pred;
  std::vector<const Node*> merges;  // where the two sides join
};

// A frame. The first one is the graph itself.
struct FlowLoop {
  std::string name;
  FlowPlace outer;
  std::vector<const Node*> enters, merges, exits;  // merges: where the loop's variables come round
  const Node* cond = nullptr;                      // the LoopCond of the loop
};

class FlowStructure {
 public:
  explicit FlowStructure(const Graph& graph);

  int32_t size() const { return int32_t(at_.size()); }  // number of nodes that the graph had
  const std::vector<FlowLoop>& loops() const { return loops_; }
  const std::vector<FlowRegion>& regions() const { return regions_; }

  // Returns the place of a value. Errors: UNIMPLEMENTED for a graph that no program of conditions
  // and loops produces, naming the node that shows this.
  StatusOr<FlowPlace> Of(const Edge& e) const;
  // Returns the place where the node runs.
  StatusOr<FlowPlace> At(const Node& n) const;
  // Returns true if `place` is `in`, or lies in a branch or loop inside it.
  bool Within(FlowPlace place, const FlowPlace& in) const;
  // For a Merge that joins the two sides of a condition, returns the condition's region; -1 for
  // other nodes.
  int32_t Closes(const Node& merge) const { return closes_[size_t(merge.id())]; }
  // A Switch that a loop's LoopCond controls.
  static bool IsOfLoop(const Node& n) { return FlowOf(n.op()) == Flow::kSwitch && FlowOf(n.inputs()[1].node->op()) == Flow::kLoopCond; }

 private:
  Status Place(const Node& n);
  Status Join(const Node& n, const Node& input, const FlowPlace& of, bool* first, FlowPlace* place) const;
  Status Wait(const Node& n, const Node& before, bool* first, FlowPlace* place) const;
  Status PlaceMerge(const Node& n);
  Status PlaceEnter(const Node& n, const FlowPlace& at);
  FlowPlace Output(const Node& n, int32_t port) const;

  std::vector<FlowPlace> at_;                // per node
  std::vector<Status> bad_;                  // per node
  std::vector<int32_t> closes_;              // per node
  std::map<const Node*, int32_t> switches_;  // the region that each leads into
  std::vector<FlowLoop> loops_;
  std::vector<FlowRegion> regions_;
  std::map<std::string, int32_t> by_name_;
  std::map<std::tuple<int32_t, int32_t, int32_t, int32_t, int32_t>, int32_t> by_pred_;
};

}  // namespace thalweg
