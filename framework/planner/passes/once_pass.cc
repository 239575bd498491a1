#include "framework/planner/emit/waits.h"
#include "framework/planner/work_graph.h"
#include "framework/runtime/step/evaluate.h"

namespace thalweg {

NodeRun RunOf(const WorkGraph& w, const WorkNode& n) {
  NodeRun run;
  run.node = n.node;
  run.kernel = n.kernel;
  run.device = n.device;
  run.types = n.node->types().data();
  ResolveArguments(&run);
  run.async = run.async || (n.kernel->spec.async_calls && CallsWhatWaits(w, *n.node));
  run.host = w.states->HostFor(*n.node, *n.kernel);
  if (!run.opens()) return run;
  for (const WorkEdge& e : n.in) run.variables.push_back(w.nodes[size_t(e.node)].handle(e.port).shape);
  return run;
}

Status OncePass(WorkGraph* w) {
  for (WorkNode& n : w->nodes) {
    if (n.dead || n.constant || !n.node || !n.node->op().once || !n.in.empty()) continue;
    ASSIGN_OR_RETURN(n.values, w->states->Once(RunOf(*w, n)));
    n.constant = true;
  }
  return PrunePass(w);
}

}  // namespace thalweg
