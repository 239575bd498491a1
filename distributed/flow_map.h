// FlowMap: derives facts about values from a graph's branches and loops: the loop of each value,
// whether the value may be dead because a branch was not taken, and whether a reference leads to
// it. It depends on the graph alone, not on what a signature feeds or omits. Threads: one at a
// time.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "framework/graph/flow.h"
#include "framework/graph/graph.h"

namespace thalweg::distributed {

class FlowMap {
 public:
  struct Frame {
    std::string name;
    int32_t parent = 0;
    const Node* enter = nullptr;  // the first Enter that leads into it
    const Node* cond = nullptr;   // its LoopCond; NULL if it has none
  };

  explicit FlowMap(const Graph* graph) : graph_(graph), frames_(1) {}
  // Examines the nodes that were added.
  void Update();
  // The frame of the node's outputs; 0 if there is none.
  int32_t FrameOf(const Node& n) const { return FrameAt(n.id()); }
  // The frame that the node itself runs in.
  int32_t RunsIn(const Node& n) const;
  const Frame& frame(int32_t i) const { return frames_[size_t(i)]; }
  // Returns true if the value is in a loop, or in a branch of a condition before its merge.
  bool MayBeDead(const Edge& e) const;
  // Returns true if the node's shape may differ from the declared one: a reference leads to it,
  // whose assignments may leave the shape open, or whole numbers that are known unless they are
  // fed.
  bool MayHaveAnotherShape(const Node& n) const { return open_.count(n.id()) != 0; }

 private:
  // A side of a condition. pred is NULL for a condition whose branches have no recognizable merge.
  struct Side {
    const Node* pred = nullptr;
    int32_t port = 0, taken = 0;
    auto operator<=>(const Side&) const = default;
  };
  using Sides = std::vector<Side>;  // sorted
  int32_t FrameAt(int32_t id) const {
    auto it = frame_of_.find(id);
    return it == frame_of_.end() ? 0 : it->second;
  }
  void Look(const Node& n);
  int32_t FrameAround(const Node& n) const;
  int32_t Into(const Node& enter, int32_t parent);
  Sides SidesOf(const Edge& e) const;
  Sides Merged(const Node& n) const;
  Sides Gathered(const Node& n) const;

  const Graph* const graph_;
  int32_t seen_ = 0;
  std::vector<Frame> frames_;  // the first is the graph itself
  std::vector<Sides> outside_{1};
  std::map<std::string, int32_t> by_name_;
  std::unordered_map<int32_t, int32_t> frame_of_;  // nodes in loops
  std::unordered_map<int32_t, Sides> sides_;       // nodes in branches
  std::unordered_set<int32_t> open_;
};

}  // namespace thalweg::distributed
