#include "boxes.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <unordered_map>

#include "handles.h"
#include "operation_text.h"
#include "scopes.h"

namespace thalweg::cli {
namespace {

BoxKind KindOf(const char* type) {
  if (std::strcmp(type, "Placeholder") == 0 || std::strcmp(type, "PlaceholderWithDefault") == 0) return BoxKind::kInput;
  if (std::strcmp(type, "VarHandleOp") == 0 || std::strcmp(type, "VariableV2") == 0) return BoxKind::kVariable;
  return std::strcmp(type, "Const") == 0 ? BoxKind::kConstant : BoxKind::kOperation;
}

const tw_operation* OnlyOperation(const ScopeNode& node) {
  if (node.op) return node.op;
  return OnlyOperation(node.children[0]);
}

class Maker {
 public:
  explicit Maker(const tw::Graph& graph) : graph_(graph) {}

  void AddBoxes(const ScopeNode& scope, const std::string& prefix, size_t depth) {
    for (const ScopeNode& node : scope.children) {
      if (node.operations == 1)
        AddOperation(OnlyOperation(node));
      else if (depth > 1)
        AddBoxes(node, prefix + node.name + "/", depth - 1);
      else
        AddScope(node, prefix + node.name + "/");
    }
  }
  void AddArrows() {
    std::map<std::pair<size_t, size_t>, size_t> known;
    for (uint32_t i = 0; i < tw_graph_count(graph_.c()); ++i) {
      const tw_operation* op = tw_graph_operation(graph_.c(), i);
      for (uint32_t k = 0; k < tw_operation_input_count(op); ++k) {
        const tw_output value = tw_operation_input(op, k);
        const tw_operation* producer = nullptr;
        tw::raise(tw_graph_producer(graph_.c(), value, &producer, nullptr));
        if (Arrow* arrow = Connect(producer, op, &known)) arrow->label = ++arrow->values == 1 ? Describe(graph_, value) : "";
      }
      for (uint32_t k = 0; k < tw_operation_control_count(op); ++k) Connect(tw_operation_control(op, k), op, &known);
    }
  }
  Boxes Take() { return std::move(made_); }

 private:
  void AddOperation(const tw_operation* op) {
    box_of_[op] = made_.boxes.size();
    const char* type = tw_operation_type(op);
    made_.boxes.push_back({KindOf(type), tw_operation_name(op), type, OutputsText(graph_, op), 1});
  }
  void AddScope(const ScopeNode& scope, const std::string& name) {
    AddMembers(scope, made_.boxes.size());
    made_.boxes.push_back({BoxKind::kScope, name, "", "", scope.operations});
    ++made_.closed;
  }
  void AddMembers(const ScopeNode& scope, size_t box) {
    if (scope.op) box_of_[scope.op] = box;
    for (const ScopeNode& child : scope.children) AddMembers(child, box);
  }
  Arrow* Connect(const tw_operation* from, const tw_operation* to, std::map<std::pair<size_t, size_t>, size_t>* known) {
    const std::pair<size_t, size_t> ends = {box_of_.at(from), box_of_.at(to)};
    if (ends.first == ends.second) return nullptr;
    const auto [at, fresh] = known->try_emplace(ends, made_.arrows.size());
    if (fresh) made_.arrows.push_back({ends.first, ends.second, 0, ""});
    return &made_.arrows[at->second];
  }

  const tw::Graph& graph_;
  std::unordered_map<const tw_operation*, size_t> box_of_;
  Boxes made_;
};

}  // namespace

Boxes MakeBoxes(const tw::Graph& graph, size_t depth, size_t most) {
  const ScopeNode root = ScopesOf(graph);
  const size_t chosen = depth ? std::min(depth, kDeepestScope) : ChooseDepth(root, most);
  Maker maker(graph);
  maker.AddBoxes(root, "", chosen);
  maker.AddArrows();
  Boxes boxes = maker.Take();
  boxes.depth = chosen;
  return boxes;
}

void GroupConstants(Boxes* b) {
  const size_t n = b->boxes.size();
  std::vector<size_t> readers(n), reader(n), group(n, SIZE_MAX), moved(n);  // group: per reader, the box of the first of its constants
  std::vector<char> read_into(n);
  for (const Arrow& a : b->arrows) {
    ++readers[a.from];
    reader[a.from] = a.to;
    read_into[a.to] = 1;
  }
  std::vector<Box> boxes;
  for (size_t i = 0; i < n; ++i) {
    Box& box = b->boxes[i];
    const bool alone = box.kind == BoxKind::kConstant && readers[i] == 1 && !read_into[i];
    if (alone && group[reader[i]] != SIZE_MAX) {
      moved[i] = group[reader[i]];
      Box& all = boxes[moved[i]];
      all.name += ", " + box.name;
      all.type = std::to_string(++all.operations) + " constants";
      all.outputs.clear();
      continue;
    }
    moved[i] = boxes.size();
    if (alone) group[reader[i]] = moved[i];
    boxes.push_back(std::move(box));
  }
  std::vector<Arrow> arrows;
  std::map<std::pair<size_t, size_t>, size_t> known;
  for (Arrow& a : b->arrows) {
    a.from = moved[a.from];
    a.to = moved[a.to];
    const auto [at, fresh] = known.try_emplace({a.from, a.to}, arrows.size());
    if (fresh) {
      arrows.push_back(std::move(a));
      continue;
    }
    arrows[at->second].values += a.values;
    arrows[at->second].label.clear();
  }
  b->boxes = std::move(boxes);
  b->arrows = std::move(arrows);
}

}  // namespace thalweg::cli
