// The stored form of links between nodes (Graph::Extend, Graph::Replace): attributes of the nodes
// that run in place of others. With them a graph that was written and read again computes nothing
// twice. Graphs keep the links; no Node has these attributes. Threads: one.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "framework/base/status.h"
#include "framework/graph/graph.h"

namespace thalweg {

inline constexpr std::string_view kExtendsAttr = "_thalweg_extends";    // string: name of the node in whose place it runs
inline constexpr std::string_view kReplacesAttr = "_thalweg_replaces";  // list(string): "value output" per replaced value
inline bool IsLinkAttr(std::string_view name) { return name == kExtendsAttr || name == kReplacesAttr; }

// The links of a graph, for writing.
class NodeLinks {
 public:
  explicit NodeLinks(const Graph& graph);
  // Returns serialised AttrValues by name.
  StatusOr<std::map<std::string, std::string>> AttrsOf(const Node& node) const;

 private:
  std::unordered_map<const Node*, std::string> extends_;
  std::unordered_map<const Node*, std::vector<std::string>> replaces_;
};

// Adds the links that an attribute of `node` describes. find: returns a node by its name in the
// file; NULL if it is not there, and the link is then skipped. INVALID_ARGUMENT for an invalid
// attribute, and for nodes that cannot run in each other's place.
Status TieNode(Graph* graph, const Node* node, std::string_view attr, std::string_view message,
               const std::function<const Node*(std::string_view name)>& find);

}  // namespace thalweg
