#include "framework/graph/left_out.h"

#include <map>
#include <set>
#include <vector>

#include "framework/base/shown.h"
#include "framework/graph/function.h"
#include "framework/graph/graph_def_fields.h"
#include "framework/proto/wire.h"

namespace thalweg {
namespace {

using namespace graph_def;

struct LeftOut {
  std::string_view op;
  std::vector<std::string_view> inputs;
};

// Returns the left-out nodes by name. Views point into `fields`.
std::map<std::string_view, LeftOut> AllLeftOut(std::string_view fields) {
  std::map<std::string_view, LeftOut> all;
  WireReader reader(fields);
  for (WireField f; reader.Next(&f);) {
    if (f.number != kNode || f.type != WireField::kBytes) continue;
    std::string_view name;
    LeftOut node;
    WireReader fields_of_node(f.bytes);
    for (WireField n; fields_of_node.Next(&n);) {
      if (n.type != WireField::kBytes) continue;
      if (n.number == kName) name = n.bytes;
      if (n.number == kOp) node.op = n.bytes;
      if (n.number == kInput) node.inputs.push_back(n.bytes);
    }
    all.emplace(name, std::move(node));
  }
  return all;
}

bool IsDefined(const Graph& graph, std::string_view op) {
  if (graph.host().FindOp(op)) return true;
  const auto functions = graph.functions();
  return functions && functions->Stored(op).ok();
}

// Describes the missing ops of these nodes and of all nodes that they need.
std::string MissingOps(const Graph& graph, const std::map<std::string_view, LeftOut>& all, std::vector<std::string_view> todo) {
  constexpr size_t kNamed = 20;
  std::set<std::string_view> seen;
  std::map<std::string_view, size_t> nodes_of;
  while (!todo.empty()) {
    const std::string_view name = todo.back();
    todo.pop_back();
    const auto node = all.find(name);
    if (node == all.end() || !seen.insert(name).second) continue;
    ++nodes_of[node->second.op];
    for (const std::string_view input : node->second.inputs) {
      todo.push_back(input.substr(input.starts_with('^'), input.find(':')));  // of "node", "node:1" or "^node"
    }
  }
  std::erase_if(nodes_of, [&](const auto& op) { return IsDefined(graph, op.first); });
  std::string text;
  size_t named = 0;
  for (const auto& [op, n] : nodes_of) {
    if (named++ == kNamed) break;
    text += StrCat(text.empty() ? "" : ", ", "'", Shown(op), "' (", n, n == 1 ? " node)" : " nodes)");
  }
  if (nodes_of.size() > kNamed) text += StrCat(" and ", nodes_of.size() - kNamed, " more");
  return text.empty() ? "which had ops that nobody defined; import the graph again"
                      : StrCat("no loaded plugin defines ", text, "; load the plugin that does, and import the graph again");
}

}  // namespace

Status CheckNotLeftOut(const Graph& graph, std::string_view name) {
  const GraphExtras extras = graph.extras();
  const auto all = AllLeftOut(extras.unknown_fields);
  if (!all.count(name)) return Status();
  return NotFound("node '", Shown(name), "' was left out of the import: ", MissingOps(graph, all, {name}));
}

Status CheckNothingLeftOut(const Graph& graph) {
  const GraphExtras extras = graph.extras();
  const auto all = AllLeftOut(extras.unknown_fields);
  if (all.empty()) return Status();
  std::vector<std::string_view> names;
  for (const auto& [name, node] : all) names.push_back(name);
  return NotFound(all.size(), all.size() == 1 ? " node was" : " nodes were", " left out of the import: ", MissingOps(graph, all, names));
}

}  // namespace thalweg
