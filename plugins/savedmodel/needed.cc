#include "needed.h"

#include <google/protobuf/arena.h>

#include "xla_module.h"

namespace thalweg::savedmodel {

Needed::Needed(const proto::GraphDef& graph) : graph_(graph), by_name_(ByName(graph.node())) {
  for (const proto::FunctionDef& f : graph.library().function()) functions_.emplace(f.signature().name(), &f);
}

const proto::FunctionDef* Needed::function(std::string_view name) const {
  const auto it = functions_.find(name);
  return it == functions_.end() ? nullptr : it->second;
}

void Needed::Count(const proto::NodeDef& node, std::string_view function) {
  std::vector<std::string_view> called;
  FunctionsOf(node, &called);
  if (this->function(node.op())) {
    called.push_back(node.op());
  } else {
    Use& use = ops_[node.op()];
    if (use.nodes++ == 0) {
      use.first = "'" + node.name() + "'" + (function.empty() ? "" : " of function '" + std::string(function) + "'");
    }
  }
  for (const std::string_view f : called) AddFunction(f);
}

void Needed::AddFunction(std::string_view name) {
  std::vector<std::string_view> todo{name};
  while (!todo.empty()) {
    const std::string_view next = todo.back();
    todo.pop_back();
    const proto::FunctionDef* f = function(next);
    if (!f || !called_.insert(f->signature().name()).second) continue;
    for (const proto::NodeDef& n : f->node_def()) {
      if (function(n.op())) {
        todo.push_back(n.op());
      } else {
        Use& use = ops_[n.op()];
        if (use.nodes++ == 0) use.first = "'" + n.name() + "' of function '" + f->signature().name() + "'";
      }
      FunctionsOf(n, &todo);
    }
    // Gradients that the file declares for the function belong to it.
    for (const proto::GradientDef& g : graph_.library().gradient()) {
      if (g.function_name() == next) todo.push_back(g.gradient_func());
    }
  }
}

void Needed::Add(std::string_view value, const std::string& what) {
  const auto first = by_name_.find(NodeOf(value));
  if (first == by_name_.end()) throw Error{TW_NOT_FOUND, what + " is '" + std::string(value) + "', but the graph has no such operation"};
  std::vector<const proto::NodeDef*> todo{first->second};
  while (!todo.empty()) {
    const proto::NodeDef* node = todo.back();
    todo.pop_back();
    if (!nodes_.insert(node->name()).second) continue;
    Count(*node, "");
    for (const std::string& input : node->input()) {
      const auto from = by_name_.find(NodeOf(input));
      // The import names a node that does not exist.
      if (from != by_name_.end()) todo.push_back(from->second);
    }
  }
}

void Needed::ReportMissingOps(Sink* sink) const {
  for (const auto& [op, use] : ops_) {
    if (op == kXlaCallModule || sink->HasOp(std::string(op))) continue;
    const std::string count = use.nodes == 1 ? "1 node, " : std::to_string(use.nodes) + " nodes, such as ";
    sink->Problem(TW_NOT_FOUND, "op '" + std::string(op) + "' (" + count + use.first +
                                    ") is defined by no loaded plugin; load the plugin that defines it");
  }
}

proto::GraphDef* Needed::Take(proto::GraphDef* graph) const {
  auto& taken = *google::protobuf::Arena::CreateMessage<proto::GraphDef>(graph->GetArena());
  *taken.mutable_versions() = graph->versions();
  taken.set_version(graph->version());
  std::vector<proto::NodeDef*> nodes;
  for (proto::NodeDef& n : *graph->mutable_node()) {
    if (has(n.name())) nodes.push_back(&n);
  }
  for (proto::NodeDef* n : nodes) taken.add_node()->Swap(n);
  const proto::FunctionDefLibrary& library = graph->library();
  for (const proto::RegisteredGradient& g : library.registered_gradients()) {
    if (called_.count(g.gradient_func())) *taken.mutable_library()->add_registered_gradients() = g;
  }
  for (const proto::GradientDef& g : library.gradient()) {
    if (called_.count(g.function_name())) *taken.mutable_library()->add_gradient() = g;
  }
  std::vector<proto::FunctionDef*> functions;
  for (proto::FunctionDef& f : *graph->mutable_library()->mutable_function()) {
    if (called_.count(f.signature().name())) functions.push_back(&f);
  }
  for (proto::FunctionDef* f : functions) taken.mutable_library()->add_function()->Swap(f);
  return &taken;
}

}  // namespace thalweg::savedmodel
