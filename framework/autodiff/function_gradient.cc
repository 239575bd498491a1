#include "framework/autodiff/function_gradient.h"

#include "framework/autodiff/call_gradient.h"
#include "framework/autodiff/stored_gradient.h"
#include "framework/graph/node_marks.h"

namespace thalweg {

Status AddFunctionGradient(Graph* graph, const Node& node, const std::string& scope, const NodeGradient& given) {
  NodeGradient gradient = given;
  if (IsMarked(node, kRecomputeAttr)) gradient.keeping = {.recompute = true};
  CallGradient c(graph, node, scope, gradient);
  RETURN_IF_ERROR(c.Open());
  if (c.role() == "while") return AddLoopGradient(c);
  if (c.role() == "for") return Internal("it has no While");  // AddFunctionalForms adds a While for every For
  if (c.role() == "if") return AddBranchGradient(c, {"then_branch", "else_branch"}, 1);
  if (c.role() == "case") return AddBranchGradient(c, {"branches"}, 1);
  if (const auto stored = c.library().GradientOf(c.node().FindAttr("f")->strings()[0])) return AddStoredGradient(c, *stored);
  return AddBranchGradient(c, {"f"}, 0);
}

}  // namespace thalweg
