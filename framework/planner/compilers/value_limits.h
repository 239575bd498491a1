// Upper limits of the sizes of a plan's values. Values with known shapes cost nothing. Threads: one.
#pragma once
#include <map>
#include <vector>

#include "framework/planner/work_graph.h"

namespace thalweg {

struct PartGraph;

// The limits of a work graph's values, which are computed when they are asked for.
class ValueLimits {
 public:
  explicit ValueLimits(const WorkGraph& w) : w_(w) {}  // borrows the graph, which must not change
  // Returns a shape whose sizes are the largest that the value can have; -1: no limit is known.
  Shape of(const WorkEdge& e);

 private:
  bool Known(int32_t node) const;
  void Compute(int32_t node);
  const WorkGraph& w_;
  std::map<int32_t, std::vector<Shape>> limits_;  // of nodes with unknown shapes
};

// Returns the limits of the outputs of each member of the part.
std::vector<std::vector<Shape>> MemberLimits(const PartGraph& g);

}  // namespace thalweg
