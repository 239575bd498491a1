// What a GraphDef says of nodes that run in the place of others (Graph::Extend, Graph::Replace): attributes of these nodes, so that a graph
// that was written and read again does nothing twice. Graphs keep the links; no node has the attributes.
// Threads: one.
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

inline constexpr std::string_view kExtendsAttr = "_thalweg_extends";    // string: the node in whose place it runs
inline constexpr std::string_view kReplacesAttr = "_thalweg_replaces";  // list(string): "value output" of those that its outputs replace
inline bool IsLinkAttr(std::string_view name) { return name == kExtendsAttr || name == kReplacesAttr; }

// The links of a graph, to be written.
class NodeLinks {
 public:
  explicit NodeLinks(const Graph& graph);
  // Serialised AttrValues, by name.
  StatusOr<std::map<std::string, std::string>> AttrsOf(const Node& node) const;

 private:
  std::unordered_map<const Node*, std::string> extends_;
  std::unordered_map<const Node*, std::vector<std::string>> replaces_;
};

// Ties `node` as its attribute says. find: a node by the name that it has in the file; NULL: it is not there, and nothing is tied to it.
// Errors: INVALID_ARGUMENT for an attribute that is none, and for nodes that cannot run in each other's place.
Status TieNode(Graph* graph, const Node* node, std::string_view attr, std::string_view message,
               const std::function<const Node*(std::string_view name)>& find);

}  // namespace thalweg
