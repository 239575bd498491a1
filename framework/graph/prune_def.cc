#include "framework/graph/prune_def.h"

#include <set>
#include <unordered_map>
#include <unordered_set>

#include "framework/proto/graph.pb.h"

namespace thalweg {

namespace {

void AddFunctions(const proto::AttrValue& attr, std::vector<std::string>* names) {
  const auto add = [&](const proto::NameAttrList& f) {
    names->push_back(f.name());
    for (const auto& [name, value] : f.attr()) AddFunctions(value, names);
  };
  if (attr.has_func()) add(attr.func());
  for (const proto::NameAttrList& f : attr.list().func()) add(f);
}

// The names of functions that a node may call: as its op, or by its attributes.
void AddFunctions(const proto::NodeDef& node, std::vector<std::string>* names) {
  names->push_back(node.op());
  for (const auto& [name, value] : node.attr()) AddFunctions(value, names);
}

void PruneFunctions(proto::GraphDef* graph) {
  std::unordered_map<std::string, const proto::FunctionDef*> known;
  for (const proto::FunctionDef& f : graph->library().function()) known[f.signature().name()] = &f;
  std::unordered_map<std::string, std::string> gradients;
  for (const proto::GradientDef& g : graph->library().gradient()) gradients[g.function_name()] = g.gradient_func();

  std::vector<std::string> todo;
  for (const proto::NodeDef& node : graph->node()) AddFunctions(node, &todo);
  std::set<std::string> needed;
  while (!todo.empty()) {
    const std::string name = std::move(todo.back());
    todo.pop_back();
    const auto found = known.find(name);
    if (found == known.end() || !needed.insert(name).second) continue;
    for (const proto::NodeDef& node : found->second->node_def()) AddFunctions(node, &todo);
    for (const auto& [key, value] : found->second->attr()) AddFunctions(value, &todo);
    if (const auto gradient = gradients.find(name); gradient != gradients.end()) todo.push_back(gradient->second);
  }
  proto::FunctionDefLibrary* library = graph->mutable_library();
  proto::FunctionDefLibrary kept;
  for (proto::FunctionDef& f : *library->mutable_function()) {
    if (needed.count(f.signature().name())) *kept.add_function() = std::move(f);
  }
  for (proto::GradientDef& g : *library->mutable_gradient()) {
    if (needed.count(g.function_name())) *kept.add_gradient() = std::move(g);
  }
  *library = std::move(kept);
}

}  // namespace

std::string NodeOfInput(const std::string& input) {
  const size_t first = !input.empty() && input[0] == '^' ? 1 : 0;
  return input.substr(first, input.find(':', first) - first);
}

Status PruneGraphDef(const std::vector<std::string>& names, proto::GraphDef* graph) {
  std::unordered_map<std::string, const proto::NodeDef*> nodes;
  for (const proto::NodeDef& node : graph->node()) nodes[node.name()] = &node;
  std::vector<std::string> todo = names;
  std::unordered_set<std::string> needed;
  while (!todo.empty()) {
    const std::string name = std::move(todo.back());
    todo.pop_back();
    const auto found = nodes.find(name);
    if (found == nodes.end()) return InvalidArgument("the graph has no node '", name, "'");
    if (!needed.insert(name).second) continue;
    for (const std::string& input : found->second->input()) todo.push_back(NodeOfInput(input));
  }
  google::protobuf::RepeatedPtrField<proto::NodeDef> kept;
  for (proto::NodeDef& node : *graph->mutable_node()) {
    if (!needed.count(node.name())) continue;
    node.mutable_attr()->erase("_class");
    *kept.Add() = std::move(node);
  }
  graph->mutable_node()->Swap(&kept);
  PruneFunctions(graph);
  return Status();
}

}  // namespace thalweg
