#include "distributed/flow_map.h"

#include <algorithm>
#include <iterator>

namespace thalweg::distributed {

void FlowMap::Update() {
  for (const int32_t size = graph_->size(); seen_ < size; ++seen_) Look(*graph_->node(seen_));
}

// REQUIRES: all earlier nodes were examined.
void FlowMap::Look(const Node& n) {
  const auto opens = [this](const Edge& e) {
    const uint32_t type = e.node->out_type(e.port);
    const bool may_be_sizes = e.node->value(e.port) && (type == TW_INT32 || type == TW_INT64);  // a feed may replace them
    return may_be_sizes || MayHaveAnotherShape(*e.node);
  };
  if (n.runs_as() || std::any_of(n.inputs().begin(), n.inputs().end(), opens)) open_.insert(n.id());
  const Flow flow = FlowOf(n);
  const int32_t around = FrameAround(n);
  int32_t frame = around;
  if (flow == Flow::kEnter) frame = Into(n, around);
  if (flow == Flow::kExit) frame = frames_[size_t(around)].parent;
  if (flow == Flow::kLoopCond && around && !frames_[size_t(around)].cond) frames_[size_t(around)].cond = &n;
  if (frame) frame_of_[n.id()] = frame;
  if (frame || flow == Flow::kControlTrigger) return;
  Sides sides = flow == Flow::kExit ? outside_[size_t(around)] : flow == Flow::kMerge ? Merged(n) : Gathered(n);
  if (!sides.empty()) sides_[n.id()] = std::move(sides);
}

// Returns the innermost frame of the node's inputs and control inputs.
int32_t FlowMap::FrameAround(const Node& n) const {
  int32_t frame = 0;
  for (const Edge& e : n.inputs()) frame = std::max(frame, FrameAt(e.node->id()));
  for (const Node* c : n.controls()) frame = std::max(frame, FrameAt(c->id()));
  return frame;
}

int32_t FlowMap::RunsIn(const Node& n) const {
  const Flow flow = FlowOf(n);
  return flow == Flow::kEnter || flow == Flow::kExit ? FrameAround(n) : FrameOf(n);
}

int32_t FlowMap::Into(const Node& enter, int32_t parent) {
  const std::string& name = enter.FindAttr("frame_name")->strings()[0];
  const auto [at, is_new] = by_name_.emplace(name, int32_t(frames_.size()));
  if (is_new) {
    frames_.push_back({name, parent, &enter, nullptr});
    outside_.push_back(parent ? Sides() : Gathered(enter));
  }
  return at->second;
}

FlowMap::Sides FlowMap::SidesOf(const Edge& e) const {
  auto it = sides_.find(e.node->id());
  Sides sides = it == sides_.end() ? Sides() : it->second;
  if (FlowOf(*e.node) != Flow::kSwitch) return sides;
  const Edge& pred = e.node->inputs()[1];
  const Side side = {pred.node, pred.port, e.port};
  sides.insert(std::upper_bound(sides.begin(), sides.end(), side), side);
  return sides;
}

FlowMap::Sides FlowMap::Gathered(const Node& n) const {
  Sides all;
  const auto add = [&all](const Sides& more) {
    Sides both;
    std::set_union(all.begin(), all.end(), more.begin(), more.end(), std::back_inserter(both));
    all = std::move(both);
  };
  for (const Edge& e : n.inputs()) add(SidesOf(e));
  for (const Node* c : n.controls()) {
    if (auto it = sides_.find(c->id()); it != sides_.end()) add(it->second);
  }
  return all;
}

// If the inputs are the two sides of one condition, the merge depends only on the sides that both
// share; so it does if one input needs no other sides.
FlowMap::Sides FlowMap::Merged(const Node& n) const {
  std::vector<Sides> each;
  for (const Edge& e : n.inputs()) each.push_back(SidesOf(e));
  if (each.empty()) return Sides();
  Sides common = each[0];
  for (const Sides& s : each) {
    Sides both;
    std::set_intersection(common.begin(), common.end(), s.begin(), s.end(), std::back_inserter(both));
    common = std::move(both);
  }
  if (std::any_of(each.begin(), each.end(), [&](const Sides& s) { return s.size() == common.size(); })) return common;
  Sides a, b;
  if (each.size() == 2) {
    std::set_difference(each[0].begin(), each[0].end(), common.begin(), common.end(), std::back_inserter(a));
    std::set_difference(each[1].begin(), each[1].end(), common.begin(), common.end(), std::back_inserter(b));
  }
  const bool meet = a.size() == 1 && b.size() == 1 && a[0].pred && a[0].pred == b[0].pred && a[0].port == b[0].port;
  if (!meet && (common.empty() || common[0].pred)) common.insert(common.begin(), Side());
  return common;
}

bool FlowMap::MayBeDead(const Edge& e) const { return FrameOf(*e.node) != 0 || !SidesOf(e).empty(); }

}  // namespace thalweg::distributed
