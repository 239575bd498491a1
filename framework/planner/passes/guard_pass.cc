#include <algorithm>

#include "framework/planner/work_graph.h"

namespace thalweg {
namespace {

bool Has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Status Check(const Node& node, const ImportedRules& rules) {
  const OpSchema& op = node.origin().op();
  const auto who = [&node] { return StrCat(node.title(), " of an imported graph"); };
  constexpr auto kCode = absl::StatusCode::kPermissionDenied;
  if (Has(rules.deny_ops, op.name)) return Error(kCode, who(), ": op ", op.name, " is in the session's deny_ops; run a graph without it");
  if (!rules.allow_ops.empty() && !Has(rules.allow_ops, op.name)) {
    return Error(kCode, who(), ": op ", op.name, " is not in the session's allow_ops; add it there if the graph may use it");
  }
  const uint32_t refused = (op.touches | node.op().touches) & ~rules.may_touch;
  if (!refused) return Status();
  return Error(kCode, who(), " touches ", TouchesText(refused), "; give the session ",
               refused == kTouchesFiles ? "allow_files=DIR, or trust_imported=true" : "trust_imported=true", ", if the graph may do that");
}

}  // namespace

Status GuardPass(WorkGraph* w) {
  for (const WorkNode& n : w->nodes) {
    if (!n.node || !n.node->imported()) continue;
    Status s = Check(*n.node, w->options->imported);
    if (!s.ok()) return OfNode(n.node->name(), s);
  }
  return Status();
}

}  // namespace thalweg
