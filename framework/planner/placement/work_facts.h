// WorkFacts: what is known of a work node when a kernel is asked whether it fits. Threads: a value.
#pragma once
#include <vector>

#include "framework/planner/work_graph.h"
#include "framework/runtime/choose_kernel.h"

namespace thalweg {

class WorkFacts {
 public:
  // Both arguments must outlive the facts.
  WorkFacts(const WorkGraph& w, const WorkNode& n) : node_(*n.node) {
    for (const WorkEdge& e : n.in) {
      const WorkNode& from = w.nodes[size_t(e.node)];
      shapes_.push_back(from.shapes[size_t(e.port)].c());
      values_.push_back(size_t(e.port) < from.values.size() && !from.ordered ? from.values[size_t(e.port)] : Tensor());
    }
    for (const Shape& s : n.shapes) shapes_.push_back(s.c());
  }
  NodeFacts facts() const { return {node_, shapes_, values_}; }

 private:
  const Node& node_;
  std::vector<tw_shape> shapes_;
  std::vector<Tensor> values_;
};

}  // namespace thalweg
