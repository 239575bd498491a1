#include "framework/planner/compilers/part_records.h"

#include <algorithm>
#include <span>

namespace thalweg {

void PartRecords::Reserve(size_t nodes, size_t in, size_t out, size_t after, size_t attrs) {
  records_.reserve(nodes);
  nodes_.reserve(nodes);
  in_.reserve(in);
  shapes_.reserve(in + out);
  values_.reserve(in + out);
  after_.reserve(after);
  attrs_.Reserve(attrs);
}

void PartRecords::Add(const Node& n) {
  tw_part_node& c = records_.emplace_back();
  nodes_.push_back(&c);
  const uint32_t first = attrs_.size();
  n.FillC(&attrs_);
  c.size = sizeof c;
  c.flags = n.op().stateful ? uint32_t{TW_PART_NODE_STATEFUL} : 0u;
  c.name = n.name().data();
  c.name_len = n.name().size();
  c.op = n.op().name.data();
  c.op_len = n.op().name.size();
  c.attrs = attrs_.data() + first;
  c.n_attrs = attrs_.size() - first;
  c.types = n.types().data();
  c.in = in_.data() + in_.size();
  c.shapes = shapes_.data() + shapes_.size();
  c.value = values_.data() + values_.size();
  c.after = after_.data() + after_.size();
}

void PartRecords::AddIn(tw_part_edge from, tw_shape shape, const tw_view* value) {
  in_.push_back(from);
  shapes_.push_back(shape);
  values_.push_back(value);
  ++records_.back().n_in;
}

void PartRecords::AddOut(tw_shape shape) {
  shapes_.push_back(shape);
  values_.push_back(nullptr);
  ++records_.back().n_out;
}

void PartRecords::AddAfter(int32_t node) {
  after_.push_back(node);
  ++records_.back().n_after;
}

void PartRecords::AddInput(uint32_t type, tw_shape shape) {
  in_types_.push_back(type);
  in_shapes_.push_back(shape);
}

void PartRecords::Finish() {
  c_.size = sizeof c_;
  c_.nodes = nodes_.data();
  c_.in_types = in_types_.data();
  c_.in_shapes = in_shapes_.data();
  c_.out = out_.data();
  c_.n_nodes = uint32_t(nodes_.size());
  c_.n_in = uint32_t(in_types_.size());
  c_.n_out = uint32_t(out_.size());
  Show(&c_);
}

PartView::PartView(const PartGraph& g) : g_(g) {
  size_t in = 0, out = 0, after = 0, attrs = 0;
  for (const PartGraph::Member& m : g.members) {
    in += m.in.size();
    out += m.shapes.size();
    after += m.after.size();
    attrs += m.node->attrs().size();
  }
  Reserve(g.members.size(), in, out, after, attrs);
  for (const PartGraph::Member& m : g.members) {
    Add(*m.node);
    for (const WorkEdge& e : m.in) {
      const tw_part_edge from{e.node, uint32_t(e.port)};
      if (e.node >= 0) {
        AddIn(from, g.members[size_t(e.node)].shapes[size_t(e.port)].c(), nullptr);
        continue;
      }
      const PartGraph::Input& input = g.inputs[size_t(e.port)];
      AddIn(from, input.shape.c(), input.value && input.dtype != TW_RESOURCE ? &input.value.view() : nullptr);
    }
    for (const Shape& s : m.shapes) AddOut(s.c());
    for (int32_t a : m.after) AddAfter(a);
  }
  for (const PartGraph::Input& input : g.inputs) AddInput(input.dtype, input.shape.c());
  for (const WorkEdge& e : g.out) AddOutput({e.node, uint32_t(e.port)});
  Finish();
}

Shape PartView::LimitOf(int32_t node, uint32_t port) const {
  if (node < -1 || (node >= 0 && size_t(node) >= g_.members.size())) return Shape();
  if (port >= (node < 0 ? g_.inputs.size() : g_.members[size_t(node)].shapes.size())) return Shape();
  const Shape& shape = node < 0 ? g_.inputs[port].shape : g_.members[size_t(node)].shapes[port];
  if (shape.known()) return shape;
  asked_ = true;
  if (node < 0) return g_.inputs[port].limit;
  if (limits_.empty()) limits_ = MemberLimits(g_);
  return limits_[size_t(node)][port];
}

ShownNodes::ShownNodes(const WorkGraph& w, const Readers& readers, const std::vector<int32_t>& work) : w_(w), work_(work), limits_(w) {
  std::vector<int32_t> member_of(w.nodes.size(), -1), input_of(readers.n_slots(), -1);
  size_t in = 0, out = 0, after = 0, attrs = 0;
  for (size_t i = 0; i < work.size(); ++i) {
    const WorkNode& n = w.nodes[size_t(work[i])];
    member_of[size_t(work[i])] = int32_t(i);
    in += n.in.size();
    out += n.shapes.size();
    after += n.controls.size();
    attrs += n.node->attrs().size();
  }
  Reserve(work.size(), in, out, after, attrs);
  for (int32_t at : work) {
    const WorkNode& n = w.nodes[size_t(at)];
    Add(*n.node);
    for (const WorkEdge& e : n.in) {
      const WorkNode& from = w.nodes[size_t(e.node)];
      const tw_shape shape = from.shapes[size_t(e.port)].c();
      if (const int32_t member = member_of[size_t(e.node)]; member >= 0) {
        AddIn({member, uint32_t(e.port)}, shape, nullptr);
        continue;
      }
      int32_t& input = input_of[readers.slot(e)];
      if (input < 0) {
        input = int32_t(inputs_.size());
        inputs_.push_back(e);
        AddInput(from.out_types[size_t(e.port)], shape);
      }
      const Tensor& value = from.values[size_t(e.port)];
      AddIn({-1, uint32_t(input)}, shape, value && !from.varies && value.dtype() != TW_RESOURCE ? &value.view() : nullptr);
    }
    for (const Shape& s : n.shapes) AddOut(s.c());
    for (int32_t c : n.controls) {
      if (member_of[size_t(c)] >= 0) AddAfter(member_of[size_t(c)]);
    }
  }
  for (size_t i = 0; i < work.size(); ++i) {
    for (int32_t o = 0; o < int32_t(w.nodes[size_t(work[i])].shapes.size()); ++o) {
      const std::span<const int32_t> all = readers.of({work[i], o});
      if (std::any_of(all.begin(), all.end(), [&](int32_t r) { return r < 0 || member_of[size_t(r)] < 0; })) {
        AddOutput({int32_t(i), uint32_t(o)});
      }
    }
  }
  Finish();
}

Shape ShownNodes::LimitOf(int32_t node, uint32_t port) const {
  if (node < 0) return node == -1 && port < inputs_.size() ? limits_.of(inputs_[port]) : Shape();
  if (size_t(node) >= work_.size()) return Shape();
  const int32_t at = work_[size_t(node)];
  return port < w_.nodes[size_t(at)].shapes.size() ? limits_.of({at, int32_t(port)}) : Shape();
}

}  // namespace thalweg
