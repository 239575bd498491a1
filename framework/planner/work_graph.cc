#include "framework/planner/work_graph.h"

#include "framework/runtime/runtime_of.h"

namespace thalweg {
const std::vector<Pass>& Passes() {
  static const std::vector<Pass> passes = {
      {"guard", "nodes of imported graphs that the session does not let run are refused", GuardPass, false},
      {"reads", "what a step reads of variables comes before its updates, unless the graph says otherwise", ReadsPass, false},
      {"frames", "which loop every node is in, and that values come into loops and out of them as they may", FramePass, false},
      {"sequence", "loops whose iterations cannot overlap run one after the other, each iteration as a plan of its own", SequencePass,
       true},
      {"inline", "calls of functions without effects become the functions' nodes", InlinePass, true},
      {"infer", "shapes for the sizes that are fed, and the constants that follow from them", InferPass, false},
      {"simplify", "nodes that change nothing are left out", SimplifyPass, true},
      {"fold", "nodes whose inputs are constants become constants", FoldPass, true},
      {"cse", "equal stateless nodes become one", CsePass, true},
      {"rewrite", "graph rewriters of plugins replace nodes by others", RewritePass, true},
      {"prune", "nodes that no fetch or target needs are dropped", PrunePass, false},
      {"place", "a device and a kernel for every node", PlacePass, false},
      {"layout", "nodes run in the order of axes that their kernels want, where that is worth the transposing", LayoutPass, true},
      {"once", "what is the same in every step of a session is computed now", OncePass, false},
      {"claim", "graph compilers of plugins take nodes that they run as one", ClaimPass, true},
      {"recompute", "values that wait long for their readers are computed again, for gradients that ask for it and for memory_budget",
       RecomputePass, true},
  };
  return passes;
}

namespace {

// Drops values that no node reads any more. Nodes that vary are evaluated again for other feeds, so
// they and their inputs keep their values.
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

Runtime& WorkGraph::runtime() const { return RuntimeOf(*graph); }

Status PrunePass(WorkGraph* w) {
  std::vector<uint8_t> live(w->nodes.size(), 0);
  std::vector<int32_t> todo;
  const auto need = [&](int32_t i) {
    if (i < 0 || live[size_t(i)]) return;
    live[size_t(i)] = 1;
    todo.push_back(i);
  };
  for (const WorkEdge& e : w->fetches) need(e.node);
  for (int32_t t : w->targets) need(t);
  while (!todo.empty()) {
    const WorkNode& n = w->nodes[size_t(todo.back())];
    todo.pop_back();
    // A constant needs no inputs any more, but the nodes that its controls name still have to run.
    if (!n.constant) {
      for (const WorkEdge& e : n.in) need(e.node);
      for (const WorkEdge& e : n.back) need(e.node);
    }
    for (int32_t c : n.controls) need(c);
  }
  for (size_t i = 0; i < w->nodes.size(); ++i) w->nodes[i].dead = w->nodes[i].dead || !live[i];
  DropValues(w);
  return Status();
}

}  // namespace thalweg
