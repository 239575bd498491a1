#include "framework/plan/work_graph.h"

#include <algorithm>
#include <unordered_map>

#include "framework/base/dtype.h"
#include "framework/base/shown.h"

namespace thalweg {
namespace {

uint64_t EdgeKey(const Edge& e) { return uint64_t(uint32_t(e.node->id())) << 16 | uint64_t(uint32_t(e.port)); }

}  // namespace

const std::vector<Pass>& Passes() {
  static const std::vector<Pass> passes = {
      {"guard", "nodes of imported graphs that the session does not let run are refused", GuardPass, false},
      {"infer", "shapes for the sizes that are fed, and the constants that follow from them", InferPass, false},
      {"simplify", "nodes that change nothing are left out", SimplifyPass, true},
      {"fold", "nodes whose inputs are constants become constants", FoldPass, true},
      {"cse", "equal stateless nodes become one", CsePass, true},
      {"prune", "nodes that no fetch or target needs are dropped", PrunePass, false},
      {"place", "a device and a kernel for every node", PlacePass, false},
      {"once", "what is the same in every step of a session is computed now", OncePass, false},
      {"claim", "graph compilers of plugins take nodes that they run as one", ClaimPass, true},
  };
  return passes;
}

Status BuildWorkGraph(Graph* graph, const Signature& sig, WorkGraph* w) {
  w->graph = graph;
  w->signature = &sig;
  std::unordered_map<uint64_t, int32_t> fed;
  for (size_t i = 0; i < sig.feeds.size(); ++i) {
    if (!fed.emplace(EdgeKey(sig.feeds[i]), int32_t(i)).second) return InvalidArgument("'", Shown(sig.feeds[i].text()), "' is fed twice");
  }
  // Backwards from what is wanted, stopping at feeds.
  std::vector<const Node*> needed, todo;
  std::vector<uint8_t> seen(size_t(graph->size()), 0);
  // A placeholder that is fed runs nothing, so nobody has to wait for it.
  auto given = [&](const Node* n) { return n->op().role == "placeholder" && fed.count(EdgeKey({n, 0})); };
  auto need = [&](const Node* n) {
    if (seen[size_t(n->id())] || given(n)) return;
    seen[size_t(n->id())] = 1;
    todo.push_back(n);
  };
  for (const Edge& e : sig.fetches) {
    if (!fed.count(EdgeKey(e))) need(e.node);
  }
  for (const Node* n : sig.targets) need(n);
  while (!todo.empty()) {
    const Node* n = todo.back();
    todo.pop_back();
    needed.push_back(n);
    for (const Edge& e : n->inputs()) {
      if (!fed.count(EdgeKey(e))) need(e.node);
    }
    for (const Node* c : n->controls()) need(c);
  }
  std::sort(needed.begin(), needed.end(), [](const Node* a, const Node* b) { return a->id() < b->id(); });

  w->nodes.reserve(sig.feeds.size() + needed.size());
  w->feeds.assign(sig.feeds.size(), -1);
  for (size_t i = 0; i < sig.feeds.size(); ++i) {
    const Edge& e = sig.feeds[i];
    WorkNode f;
    f.feed = int32_t(i);
    f.out_types = {e.node->out_type(e.port)};
    auto shape = MergeShapes(e.node->shape(e.port), w->feed_shapes[i]);
    if (!shape.ok()) {
      return InvalidArgument("the feed of '", Shown(e.text()), "' has shape ", w->feed_shapes[i].text(), " but ",
                             e.node->shape(e.port).text(), " is declared");
    }
    f.shapes = {*std::move(shape)};
    f.handles = {e.node->handle(e.port)};
    f.values.resize(1);
    f.varies = !e.node->shape(e.port).known();
    w->feeds[i] = int32_t(w->nodes.size());
    w->nodes.push_back(std::move(f));
  }
  std::vector<int32_t> index(seen.size(), -1);  // by id
  for (const Node* n : needed) {
    if (n->op().role == "placeholder") {
      return OfNode(*n, InvalidArgument(n->title(), ": no value is fed; feed '", Shown(n->name()), "' (", DTypeName(n->out_type(0)),
                                        ", shape ", n->shape(0).text(), ")"));
    }
    WorkNode x;
    x.node = n;
    x.in.reserve(n->inputs().size());
    x.controls.reserve(n->controls().size());
    for (const Edge& e : n->inputs()) {
      auto f = fed.find(EdgeKey(e));
      x.in.push_back(f != fed.end() ? WorkEdge{w->feeds[size_t(f->second)], 0} : WorkEdge{index[size_t(e.node->id())], e.port});
    }
    for (const Node* c : n->controls()) {
      if (!given(c)) x.controls.push_back(index[size_t(c->id())]);
    }
    x.out_types.assign(n->types().begin() + n->n_in(), n->types().end());
    x.values.resize(size_t(n->n_out()));
    index[size_t(n->id())] = int32_t(w->nodes.size());
    w->nodes.push_back(std::move(x));
  }
  for (const Edge& e : sig.fetches) {
    auto f = fed.find(EdgeKey(e));
    w->fetches.push_back(f != fed.end() ? WorkEdge{w->feeds[size_t(f->second)], 0} : WorkEdge{index[size_t(e.node->id())], e.port});
  }
  for (const Node* n : sig.targets) {
    if (!given(n)) w->targets.push_back(index[size_t(n->id())]);
  }
  return Status();
}

namespace {

// Values that nobody reads any more go. Nodes that vary are worked out again for other feeds, and read what they read now.
void DropValues(WorkGraph* w) {
  std::vector<uint8_t> kept(w->nodes.size(), 0);
  for (size_t i = 0; i < w->nodes.size(); ++i) {
    const WorkNode& n = w->nodes[i];
    if (!n.dead || n.varies) kept[i] = 1;
    if (!n.varies) continue;
    for (const WorkEdge& e : n.in) kept[size_t(e.node)] = 1;
  }
  for (size_t i = 0; i < w->nodes.size(); ++i) {
    if (kept[i]) continue;
    for (Tensor& v : w->nodes[i].values) v.reset();
  }
}

}  // namespace

Status PrunePass(WorkGraph* w) {
  std::vector<uint8_t> live(w->nodes.size(), 0);
  for (const WorkEdge& e : w->fetches) live[size_t(e.node)] = 1;
  for (int32_t t : w->targets) live[size_t(t)] = 1;
  for (size_t i = w->nodes.size(); i-- > 0;) {
    WorkNode& n = w->nodes[i];
    if (!live[i]) {
      n.dead = true;
      continue;
    }
    // A constant needs nothing any more, but what it was ordered after still has to happen.
    if (!n.constant) {
      for (const WorkEdge& e : n.in) live[size_t(e.node)] = 1;
    }
    for (int32_t c : n.controls) live[size_t(c)] = 1;
  }
  DropValues(w);
  return Status();
}

}  // namespace thalweg
