// PartRecords: tw_part and the records that it points to, as graph compilers see them, for a part
// that was taken out or for nodes that are still in their work graph. Threads: one.
#pragma once
#include <cstdint>
#include <vector>

#include "framework/graph/graph.h"
#include "framework/graph/shown_part.h"
#include "framework/planner/compilers/part_graph.h"
#include "framework/planner/compilers/value_limits.h"
#include "framework/planner/work_graph.h"

namespace thalweg {

class PartRecords : public ShownPart {
 public:
  const tw_part* c() const { return &c_; }

 protected:
  // Reserves room for all that will be added: records point at each other.
  void Reserve(size_t nodes, size_t in, size_t out, size_t after, size_t attrs);
  // Adds a node; then its inputs, its outputs and the nodes that it waits for follow.
  void Add(const Node& n);
  void AddIn(tw_part_edge from, tw_shape shape, const tw_view* value);
  void AddOut(tw_shape shape);
  void AddAfter(int32_t node);
  void AddInput(uint32_t type, tw_shape shape);
  void AddOutput(tw_part_edge from) { out_.push_back(from); }
  void Finish();

 private:
  std::vector<tw_part_node> records_;
  std::vector<const tw_part_node*> nodes_;
  std::vector<tw_part_edge> in_, out_;
  std::vector<tw_shape> shapes_, in_shapes_;
  std::vector<const tw_view*> values_;  // parallel to shapes_
  std::vector<int32_t> after_;
  std::vector<uint32_t> in_types_;
  CAttrs attrs_;
  tw_part c_{};
};

class PartView final : public PartRecords {
 public:
  // Borrows the graph.
  explicit PartView(const PartGraph& g);
  Shape LimitOf(int32_t node, uint32_t port) const override;
  // Returns true if LimitOf returned a limit of a size that is not known.
  bool asked() const { return asked_; }

 private:
  const PartGraph& g_;
  mutable bool asked_ = false;
  mutable std::vector<std::vector<Shape>> limits_;  // per member, made when first asked for
};

// The nodes of a work graph as `claim` sees them; they stay in the work graph.
class ShownNodes final : public PartRecords {
 public:
  // Borrows all three.
  ShownNodes(const WorkGraph& w, const Readers& readers, const std::vector<int32_t>& work);
  Shape LimitOf(int32_t node, uint32_t port) const override;
  const std::vector<int32_t>& work() const { return work_; }
  // The values of the work graph that are the part's inputs, in their order.
  const std::vector<WorkEdge>& inputs() const { return inputs_; }
  const Node* node(uint32_t i) const { return w_.nodes[size_t(work_[i])].node; }

 private:
  const WorkGraph& w_;
  const std::vector<int32_t>& work_;
  std::vector<WorkEdge> inputs_;
  mutable ValueLimits limits_;
};

}  // namespace thalweg
