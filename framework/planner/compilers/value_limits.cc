#include "framework/planner/compilers/value_limits.h"

#include <algorithm>

#include "framework/graph/size_limits.h"
#include "framework/planner/compilers/part_graph.h"

namespace thalweg {
namespace {

bool AllKnown(const std::vector<Shape>& shapes) {
  return std::all_of(shapes.begin(), shapes.end(), [](const Shape& s) { return s.known(); });
}

}  // namespace

// Limits of feeds are their shapes. In a loop, a limit would have to hold for all iterations.
bool ValueLimits::Known(int32_t node) const {
  if (node < 0) return true;
  const WorkNode& n = w_.nodes[size_t(node)];
  return !n.node || !n.back.empty() || n.frame != n.into || n.part || limits_.count(node) || AllKnown(n.shapes);
}

void ValueLimits::Compute(int32_t node) {
  const WorkNode& n = w_.nodes[size_t(node)];
  std::vector<Shape> in;
  std::vector<Tensor> values;
  for (const WorkEdge& e : n.in) {
    const auto it = limits_.find(e.node);
    if (e.node < 0) {
      in.emplace_back();
      values.emplace_back();
      continue;
    }
    const WorkNode& from = w_.nodes[size_t(e.node)];
    in.push_back(it != limits_.end() ? it->second[size_t(e.port)] : from.shapes[size_t(e.port)]);
    values.push_back(from.varies ? Tensor() : from.values[size_t(e.port)]);  // as in PartGraph::Input
  }
  limits_[node] = LimitOutputs(*n.node, n.shapes, in, values);
}

Shape ValueLimits::of(const WorkEdge& e) {
  // The nodes that the limit depends on. Edges lead to lower numbers only, so that these are computed
  // in their order.
  std::vector<int32_t> wanted, todo;
  if (!Known(e.node)) todo.push_back(e.node);
  std::map<int32_t, bool> seen;
  while (!todo.empty()) {
    const int32_t at = todo.back();
    todo.pop_back();
    if (!seen.emplace(at, true).second) continue;
    wanted.push_back(at);
    for (const WorkEdge& in : w_.nodes[size_t(at)].in) {
      if (!Known(in.node)) todo.push_back(in.node);
    }
  }
  std::sort(wanted.begin(), wanted.end());
  for (int32_t node : wanted) Compute(node);
  const auto it = limits_.find(e.node);
  return it != limits_.end() ? it->second[size_t(e.port)] : w_.nodes[size_t(e.node)].shapes[size_t(e.port)];
}

std::vector<std::vector<Shape>> MemberLimits(const PartGraph& g) {
  std::vector<std::vector<Shape>> all;
  for (const PartGraph::Member& m : g.members) {
    std::vector<Shape> in;
    std::vector<Tensor> values;
    for (const WorkEdge& e : m.in) {
      const bool inside = e.node >= 0;
      in.push_back(inside ? all[size_t(e.node)][size_t(e.port)] : g.inputs[size_t(e.port)].limit);
      values.push_back(inside ? Tensor() : g.inputs[size_t(e.port)].value);
    }
    all.push_back(LimitOutputs(*m.node, m.shapes, in, values));
  }
  return all;
}

}  // namespace thalweg
