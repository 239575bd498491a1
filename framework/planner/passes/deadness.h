// Deadness: finds which values outside loops are dead in the same steps, by the Switch branches
// that each value needs. Threads: one.
#pragma once
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "framework/planner/work_graph.h"

namespace thalweg {

class Deadness {
 public:
  explicit Deadness(const WorkGraph& w) : w_(w), loop_of_(w.nodes.size(), -1), needs_(w.nodes.size()) {}
  // Adds a loop whose exits are dead exactly if its enters are, all together. Nothing is assumed of
  // the exits of other loops.
  void AddLoop(const std::vector<int32_t>& enters, const std::vector<int32_t>& exits);
  void Find();
  // Returns true if in every step the outputs of the nodes are all alive or all dead. REQUIRES:
  // Find; nodes of the outermost frame, or enters of it.
  bool Together(const std::vector<int32_t>& nodes) const;

 private:
  // A branch of a Switch: the deciding node, its output port, and the branch; or a node of which
  // nothing is known, with -1, -1.
  struct Way {
    int32_t node, port, way;
    auto operator<=>(const Way&) const = default;
  };
  struct Needs {
    bool known = false;
    std::set<Way> ways;
  };
  WorkEdge Decider(WorkEdge e) const;
  bool NeedsOf(const WorkEdge& e, std::set<Way>* ways) const;
  Needs Work(int32_t i) const;
  Needs WorkMerge(int32_t i) const;

  const WorkGraph& w_;
  std::vector<std::vector<int32_t>> loops_;  // the enters of each loop
  std::vector<int32_t> loop_of_;             // work node that is an exit -> loop; -1 if none
  std::vector<Needs> needs_;                 // per work node
};

}  // namespace thalweg
