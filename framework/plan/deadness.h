// Which values outside of loops are dead in the same steps: by the ways that Switch nodes must take for them to be there. Threads: one.
#pragma once
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "framework/plan/work_graph.h"

namespace thalweg {

class Deadness {
 public:
  explicit Deadness(const WorkGraph& w) : w_(w), loop_of_(w.nodes.size(), -1), needs_(w.nodes.size()) {}
  // A loop whose exits are dead if its enters are, all of them together. What leaves others may be dead whenever it likes.
  void AddLoop(const std::vector<int32_t>& enters, const std::vector<int32_t>& exits);
  void Find();
  // The nodes' outputs are there together, or dead together, in every step. REQUIRES: Find; nodes of the outermost frame, or enters of it.
  bool Together(const std::vector<int32_t>& nodes) const;

 private:
  // A way of a Switch: who decides, the output of that, and the way; or a node of which nothing is known, and -1, -1.
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
  std::vector<std::vector<int32_t>> loops_;  // their enters
  std::vector<int32_t> loop_of_;             // work node, an exit -> loop; -1: none
  std::vector<Needs> needs_;                 // per work node
};

}  // namespace thalweg
