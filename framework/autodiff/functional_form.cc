#include "framework/autodiff/functional_form.h"

#include <string_view>
#include <unordered_set>

#include "framework/autodiff/for_form.h"
#include "framework/autodiff/form_builder.h"
#include "framework/base/shown.h"
#include "framework/graph/flow.h"

namespace thalweg {
namespace {

Status WantOutside(const FormBuilder& b, const Edge& e, std::string_view what) {
  ASSIGN_OR_RETURN(const FlowPlace place, b.flow().Of(e));
  if (place == FlowPlace()) return Status();
  return OfNode(*e.node, Unimplemented(e.node->title(), ": '", Shown(e.text()), "' is ", what, ", but lies in ",
                                       place.frame ? "a loop" : "a branch", "; take what leaves it, or enters it"));
}

// depends: per node, whether it depends on an x.
Status AddForms(const FormBuilder& b, const std::vector<Edge>& ys, const std::vector<Edge>& xs, const std::vector<uint8_t>& depends) {
  const Graph& graph = *b.graph();
  if (!b.has_library()) return FailedPrecondition("the graph around this one is gone");
  for (const Edge& x : xs) RETURN_IF_ERROR(WantOutside(b, x, "to differentiate by"));
  std::vector<const Node*> todo;
  for (const Edge& y : ys) {
    if (!depends[size_t(y.node->id())]) continue;
    RETURN_IF_ERROR(WantOutside(b, y, "to differentiate"));
    todo.push_back(FormOf(graph, y).node);
  }
  std::unordered_set<const Node*> seen;
  while (!todo.empty()) {
    const Node* n = todo.back();
    todo.pop_back();
    if (n->id() >= b.flow().size() || !depends[size_t(n->id())] || !seen.insert(n).second) continue;
    const Flow flow = FlowOf(n->op());
    if ((flow == Flow::kExit || flow == Flow::kMerge) && !graph.ReplacedBy({n, 0})) {
      RETURN_IF_ERROR(flow == Flow::kExit ? FormLoop(b, *n) : FormBranches(b, *n));
    }
    const Edge form = graph.ReplacedBy({n, 0});
    for (const Edge& e : form ? form.node->inputs() : n->inputs()) todo.push_back(FormOf(graph, e).node);
  }
  return Status();
}

bool HasFlow(const Graph& graph) {
  for (int32_t id = 0, n = graph.size(); id < n; ++id) {
    if (FlowOf(graph.node(id)->op()) == Flow::kSwitch || FlowOf(graph.node(id)->op()) == Flow::kEnter) return true;
  }
  return false;
}

// Returns per node whether it is one of xs or depends on one.
std::vector<uint8_t> Following(const Graph& graph, const std::vector<Edge>& xs) {
  std::vector<uint8_t> follows(size_t(graph.size()));
  for (const Edge& x : xs) follows[size_t(x.node->id())] = 1;
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t id = 0; id < follows.size(); ++id) {
      const Node& n = *graph.node(int32_t(id));
      for (int32_t i = 0; !follows[id] && i < n.n_in(); ++i) {
        const Node* back = n.back(i);
        const Edge form = graph.ReplacedBy(n.inputs()[size_t(i)]);
        if (follows[size_t(n.inputs()[size_t(i)].node->id())] || (back && follows[size_t(back->id())]) ||
            (form && follows[size_t(form.node->id())])) {
          follows[id] = 1;
          changed = true;
        }
      }
    }
  }
  return follows;
}

bool HasFor(const Graph& graph) {
  for (int32_t id = 0, n = graph.size(); id < n; ++id) {
    if (graph.node(id)->op().role == "for") return true;
  }
  return false;
}

// Adds the While of every For on a path from an x to a y.
Status AddForForms(Graph* graph, const std::vector<Edge>& ys, const std::vector<Edge>& xs) {
  const std::vector<uint8_t> depends = Following(*graph, xs);
  std::unordered_set<const Node*> seen;
  std::vector<const Node*> todo;
  for (const Edge& y : ys) todo.push_back(FormOf(*graph, y).node);
  while (!todo.empty()) {
    const Node* n = todo.back();
    todo.pop_back();
    if (size_t(n->id()) < depends.size() && (!depends[size_t(n->id())] || !seen.insert(n).second)) continue;
    if (n->op().role == "for" && !graph->ReplacedBy({n, 0})) RETURN_IF_ERROR(FormFor(graph, *n));
    for (const Edge& e : n->inputs()) todo.push_back(FormOf(*graph, e).node);
  }
  return Status();
}

}  // namespace

Status AddFunctionalForms(Graph* graph, const std::vector<Edge>& ys, const std::vector<Edge>& xs) {
  if (HasFor(*graph)) RETURN_IF_ERROR(AddForForms(graph, ys, xs));
  if (!HasFlow(*graph)) return Status();
  const std::vector<uint8_t> depends = Following(*graph, xs);
  // Branches and loops that the gradient does not pass need no form.
  std::unordered_set<const Node*> seen;
  std::vector<const Node*> todo;
  for (const Edge& y : ys) todo.push_back(y.node);
  while (!todo.empty()) {
    const Node* n = todo.back();
    todo.pop_back();
    if (!depends[size_t(n->id())] || !seen.insert(n).second) continue;
    const Flow flow = FlowOf(n->op());
    if (flow == Flow::kMerge || flow == Flow::kExit || flow == Flow::kSwitch) return AddForms(FormBuilder(graph), ys, xs, depends);
    for (const Edge& e : n->inputs()) todo.push_back(e.node);
  }
  return Status();
}

}  // namespace thalweg
