#include "framework/graph/node_links.h"

#include <charconv>
#include <unordered_set>

#include "framework/base/dtype.h"
#include "framework/base/shown.h"
#include "framework/graph/attr_proto.h"

namespace thalweg {

NodeLinks::NodeLinks(const Graph& graph) {
  for (int32_t id = 0, n = graph.size(); id < n; ++id) {
    const Node* node = graph.node(id);
    if (const Node* by = graph.ExtendedBy(node)) extends_[by] = node->name();
    for (int32_t o = 0; graph.has_replaced() && o < node->n_out(); ++o) {
      const Edge by = graph.ReplacedBy({node, o});
      if (by) replaces_[by.node].push_back(StrCat(Edge{node, o}.text(), " ", by.port));
    }
  }
}

StatusOr<std::map<std::string, std::string>> NodeLinks::AttrsOf(const Node& node) const {
  std::map<std::string, std::string> all;
  if (auto it = extends_.find(&node); it != extends_.end()) {
    ASSIGN_OR_RETURN(all[std::string(kExtendsAttr)], SerializeAttr(AttrValue::String(it->second)));
  }
  if (auto it = replaces_.find(&node); it != replaces_.end()) {
    ASSIGN_OR_RETURN(all[std::string(kReplacesAttr)], SerializeAttr(AttrValue::Strings(it->second)));
  }
  return all;
}

namespace {

// Returns true if the nodes, or nodes that run in their place, need the other node.
bool Needs(const Graph& graph, const std::vector<const Node*>& first, const Node* other) {
  std::vector<const Node*> todo(first);
  std::unordered_set<const Node*> seen;
  while (!todo.empty()) {
    const Node* n = todo.back();
    todo.pop_back();
    if (n == other) return true;
    if (!seen.insert(n).second) continue;
    for (const Edge& e : n->inputs()) todo.push_back(e.node);
    for (int32_t i = 0; i < n->n_in(); ++i) {
      if (const Node* back = n->back(i)) todo.push_back(back);
    }
    todo.insert(todo.end(), n->controls().begin(), n->controls().end());
    if (const Node* by = graph.ExtendedBy(n)) todo.push_back(by);
    for (int32_t o = 0; graph.has_replaced() && o < n->n_out(); ++o) {
      if (const Edge by = graph.ReplacedBy({n, o})) todo.push_back(by.node);
    }
  }
  return false;
}

std::vector<const Node*> InputsFrom(const Node& n, size_t first) {
  std::vector<const Node*> nodes(n.controls());
  for (size_t i = first; i < n.inputs().size(); ++i) nodes.push_back(n.inputs()[i].node);
  return nodes;
}

bool CanExtend(const Graph& graph, const Node& node, const Node& by) {
  if (by.n_in() < node.n_in() || by.n_out() <= node.n_out()) return false;  // so no two nodes extend each other
  for (size_t i = 0; i < node.inputs().size(); ++i) {
    if (!(by.inputs()[i] == node.inputs()[i])) return false;
  }
  for (int32_t o = 0; o < node.n_out(); ++o) {
    if (by.out_type(o) != node.out_type(o)) return false;
  }
  return !Needs(graph, InputsFrom(by, 0), &node);
}

Status Unfit(const Node& node, std::string_view attr, std::string_view other) {
  return OfNode(node, InvalidArgument(node.title(), ": attribute '", attr, "' names '", Shown(other),
                                      "', in whose place the node cannot run; write the graph anew"));
}

// Splits "value output".
bool Split(std::string_view text, std::string_view* name, int32_t* port, int32_t* output) {
  const size_t space = text.rfind(' ');
  if (space == text.npos) return false;
  const auto number = [](std::string_view digits, int32_t* to) {
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), *to);
    return error == std::errc() && end == digits.data() + digits.size() && *to >= 0;
  };
  *name = text.substr(0, space);
  *port = 0;
  if (!number(text.substr(space + 1), output)) return false;
  const size_t colon = name->rfind(':');
  if (colon == name->npos) return true;
  const bool good = number(name->substr(colon + 1), port);
  *name = name->substr(0, colon);
  return good;
}

}  // namespace

Status TieNode(Graph* graph, const Node* node, std::string_view attr, std::string_view message,
               const std::function<const Node*(std::string_view name)>& find) {
  const bool extends = attr == kExtendsAttr;
  AttrSpec spec;
  spec.kind = TW_ATTR_STRING;
  spec.list = !extends;
  SplatBudget budget;
  bool whole = false;
  const auto value = ParseAttr(message, spec, &budget, &whole);
  if (!value.ok() || value->kind() != TW_ATTR_STRING || value->is_list() == extends) {
    return OfNode(*node, InvalidArgument(node->title(), ": attribute '", attr, "' is no ", extends ? "string" : "list of strings"));
  }
  for (const std::string& text : value->strings()) {
    std::string_view name = text;
    int32_t port = 0, output = 0;
    if (!extends && !Split(text, &name, &port, &output)) return Unfit(*node, attr, text);
    const Node* other = find(name);
    if (!other) continue;
    if (extends) {
      if (!CanExtend(*graph, *other, *node)) return Unfit(*node, attr, text);
      graph->Extend(other, node);
      continue;
    }
    const bool fits = other->id() < node->id() && port < other->n_out() && output < node->n_out() &&
                      BaseType(other->out_type(port)) == BaseType(node->out_type(output)) && !Needs(*graph, InputsFrom(*node, 0), other);
    if (!fits) return Unfit(*node, attr, text);
    graph->Replace({other, port}, {node, output});
  }
  return Status();
}

}  // namespace thalweg
