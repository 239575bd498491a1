// Where the values of a graph are among its branches and loops, where those are made of Switch, Merge, Enter, Exit and NextIteration
// (graph/flow.h): which condition has to hold for a value to be there, and in which loop it has one for each iteration.
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

// One side of a condition. region -1: no condition.
struct FlowBranch {
  int32_t region = -1, side = 0;
  bool operator==(const FlowBranch&) const = default;
};

struct FlowPlace {
  int32_t frame = 0;
  FlowBranch branch;  // innermost within the frame
  bool operator==(const FlowPlace&) const = default;
};

// All that one value decides in one place.
struct FlowRegion {
  FlowPlace outer;
  Edge pred;
  std::vector<const Node*> merges;  // where its two sides come together
};

// A frame. The first is the graph itself.
struct FlowLoop {
  std::string name;
  FlowPlace outer;
  std::vector<const Node*> enters, merges, exits;  // merges: where it comes round
  const Node* cond = nullptr;                      // its LoopCond
};

class FlowStructure {
 public:
  explicit FlowStructure(const Graph& graph);

  int32_t size() const { return int32_t(at_.size()); }  // nodes: those that the graph had
  const std::vector<FlowLoop>& loops() const { return loops_; }
  const std::vector<FlowRegion>& regions() const { return regions_; }

  // Where the value is. Errors: UNIMPLEMENTED for a graph that no program of conditions and loops gives, naming the node where that shows.
  StatusOr<FlowPlace> Of(const Edge& e) const;
  // Where the node runs.
  StatusOr<FlowPlace> At(const Node& n) const;
  // The place is the other, or lies in a branch or loop in it.
  bool Within(FlowPlace place, const FlowPlace& in) const;
  // Of a Merge between two values of a condition: the condition; -1: it is none.
  int32_t Closes(const Node& merge) const { return closes_[size_t(merge.id())]; }
  // A Switch that a loop's LoopCond decides.
  static bool IsOfLoop(const Node& n) { return FlowOf(n.op()) == Flow::kSwitch && FlowOf(n.inputs()[1].node->op()) == Flow::kLoopCond; }

 private:
  Status Place(const Node& n);
  Status Join(const Node& n, const Node& input, const FlowPlace& of, bool* first, FlowPlace* place) const;
  Status Wait(const Node& n, const Node& before, bool* first, FlowPlace* place) const;
  Status PlaceMerge(const Node& n);
  Status PlaceEnter(const Node& n, const FlowPlace& at);
  FlowPlace Output(const Node& n, int32_t port) const;

  std::vector<FlowPlace> at_;                // per node
  std::vector<Status> bad_;                  // likewise
  std::vector<int32_t> closes_;              // likewise
  std::map<const Node*, int32_t> switches_;  // the region that it leads into
  std::vector<FlowLoop> loops_;
  std::vector<FlowRegion> regions_;
  std::map<std::string, int32_t> by_name_;
  std::map<std::tuple<int32_t, int32_t, int32_t, int32_t, int32_t>, int32_t> by_pred_;
};

}  // namespace thalweg
