#include "framework/autodiff/flow_structure.h"

#include <algorithm>

#include "framework/base/shown.h"

namespace thalweg {

FlowStructure::FlowStructure(const Graph& graph) : loops_(1) {
  const size_t n = size_t(graph.size());
  at_.resize(n);
  bad_.resize(n);
  closes_.assign(n, -1);
  for (size_t id = 0; id < n; ++id) {
    const Node& node = *graph.node(int32_t(id));
    Status s = Place(node);
    if (!s.ok()) bad_[id] = OfNode(node, std::move(s));
  }
}

StatusOr<FlowPlace> FlowStructure::Of(const Edge& e) const {
  RETURN_IF_ERROR(bad_[size_t(e.node->id())]);
  return Output(*e.node, e.port);
}

StatusOr<FlowPlace> FlowStructure::At(const Node& n) const {
  RETURN_IF_ERROR(bad_[size_t(n.id())]);
  return at_[size_t(n.id())];
}

bool FlowStructure::Within(FlowPlace place, const FlowPlace& in) const {
  while (place.frame != in.frame) {
    if (place.frame == 0) return false;
    place = loops_[size_t(place.frame)].outer;
  }
  while (!(place.branch == in.branch)) {
    if (place.branch.region < 0) return false;
    place = regions_[size_t(place.branch.region)].outer;
  }
  return true;
}

// Returns the place of the outputs of a node whose own place is known.
FlowPlace FlowStructure::Output(const Node& n, int32_t port) const {
  const FlowPlace& at = at_[size_t(n.id())];
  switch (FlowOf(n.op())) {
    case Flow::kSwitch:
      if (auto into = switches_.find(&n); into != switches_.end()) return {at.frame, {into->second, port}};
      return at;
    case Flow::kEnter: return {by_name_.at(n.FindAttr("frame_name")->strings()[0]), {}};
    case Flow::kExit: return loops_[size_t(at.frame)].outer;
    default: return at;
  }
}

// The node is where its inputs are. If they are in two branches, one must lie in the other.
Status FlowStructure::Join(const Node& n, const Node& input, const FlowPlace& of, bool* first, FlowPlace* place) const {
  if (*first || (of.frame == place->frame && Within(of, *place))) {
    *place = of;
    *first = false;
    return Status();
  }
  if (place->frame != of.frame) {
    return InvalidArgument(n.title(), ": it takes '", Shown(input.name()), "' of another frame than its other inputs");
  }
  if (Within(*place, of)) return Status();
  return Unimplemented(n.title(), ": it takes '", Shown(input.name()), "', which is there under another condition than its other inputs; ",
                       "a graph that is to be differentiated has a Merge where two conditions meet");
}

// The same for a control input. A ControlTrigger waits for all control inputs, alive or dead.
Status FlowStructure::Wait(const Node& n, const Node& before, bool* first, FlowPlace* place) const {
  FlowPlace of;
  if (FlowOf(before.op()) == Flow::kSwitch) {
    ASSIGN_OR_RETURN(of, At(before));
  } else {
    ASSIGN_OR_RETURN(of, Of({&before, 0}));
  }
  if (FlowOf(n.op()) != Flow::kControlTrigger || *first) return Join(n, before, of, first, place);
  while (place->branch.region >= 0 && !Within(of, *place)) *place = regions_[size_t(place->branch.region)].outer;
  return Status();
}

namespace {

// Returns the value that e forwards.
Edge Decider(Edge e) {
  while (e.node->op().algebra.passes == 0 && e.node->n_in() == 1 && e.node->controls().empty()) e = e.node->inputs()[0];
  return e;
}

}  // namespace

Status FlowStructure::Place(const Node& n) {
  const Flow flow = FlowOf(n.op());
  if (flow == Flow::kMerge) return PlaceMerge(n);
  FlowPlace at;
  bool first = true;
  for (const Edge& e : n.inputs()) {
    ASSIGN_OR_RETURN(const FlowPlace of, Of(e));
    RETURN_IF_ERROR(Join(n, *e.node, of, &first, &at));
  }
  for (const Node* c : n.controls()) RETURN_IF_ERROR(Wait(n, *c, &first, &at));
  at_[size_t(n.id())] = at;
  if (flow == Flow::kEnter) return PlaceEnter(n, at);
  if (flow == Flow::kLoopCond) loops_[size_t(at.frame)].cond = &n;
  if (flow == Flow::kExit) {
    at_[size_t(n.id())].branch = {};
    loops_[size_t(at.frame)].exits.push_back(&n);
  }
  if (flow == Flow::kSwitch && !IsOfLoop(n)) {
    const Edge pred = Decider(n.inputs()[1]);
    const auto key = std::tuple(at.frame, at.branch.region, at.branch.side, pred.node->id(), pred.port);
    const auto [known, is_new] = by_pred_.emplace(key, int32_t(regions_.size()));
    if (is_new) regions_.push_back({at, pred, {}});
    switches_[&n] = known->second;
  }
  return Status();
}

Status FlowStructure::PlaceEnter(const Node& n, const FlowPlace& at) {
  const std::string& name = n.FindAttr("frame_name")->strings()[0];
  const auto [known, is_new] = by_name_.emplace(name, int32_t(loops_.size()));
  if (is_new) loops_.push_back({name, at, {}, {}, {}, nullptr});
  FlowLoop& loop = loops_[size_t(known->second)];
  // All from one frame, so that no frame contains itself.
  if (at.frame != loop.outer.frame || (!Within(at, loop.outer) && !Within(loop.outer, at))) {
    return Unimplemented(n.title(), ": what enters frame '", Shown(name), "' comes from different branches or frames");
  }
  if (Within(at, loop.outer)) loop.outer = at;
  loop.enters.push_back(&n);
  return Status();
}

Status FlowStructure::PlaceMerge(const Node& n) {
  FlowPlace& at = at_[size_t(n.id())];
  for (int32_t i = 0; i < n.n_in(); ++i) {
    if (!n.back(i)) continue;
    const Edge& enter = n.inputs()[size_t(1 - i)];
    if (n.n_in() != 2 || FlowOf(enter.node->op()) != Flow::kEnter) {
      return Unimplemented(n.title(), ": a loop variable that is to be differentiated begins as a Merge of an Enter and a NextIteration");
    }
    ASSIGN_OR_RETURN(at, Of(enter));
    loops_[size_t(at.frame)].merges.push_back(&n);
    return Status();
  }
  FlowPlace sides[2];
  for (size_t i = 0; i < 2 && n.n_in() == 2; ++i) {
    ASSIGN_OR_RETURN(sides[i], Of(n.inputs()[i]));
  }
  const FlowBranch a = sides[0].branch, b = sides[1].branch;
  if (n.n_in() != 2 || a.region < 0 || a.region != b.region || a.side == b.side) {
    return Unimplemented(n.title(), ": it does not take a value of each of the two sides of one condition");
  }
  at = regions_[size_t(a.region)].outer;
  closes_[size_t(n.id())] = a.region;
  regions_[size_t(a.region)].merges.push_back(&n);
  return Status();
}

}  // namespace thalweg
