#include "restore.h"

#include <charconv>
#include <unordered_set>

namespace thalweg::savedmodel {
namespace {

// The nodes of the main graph or of one function, and what its arguments are there.
struct Body {
  const NodeMap* nodes;
  std::unordered_map<std::string_view, std::string> arguments;  // of a function: the values of the main graph
};

class Tracer {
 public:
  Tracer(const Needed& needed, std::vector<Filled>* all) : needed_(needed), all_(*all) {}

  // Follows a node and everything that it waits for.
  bool Run(const Body& body, std::string_view start) {
    std::vector<std::string_view> todo{start};
    std::unordered_set<std::string_view> seen;
    while (!todo.empty()) {
      const std::string_view name = todo.back();
      todo.pop_back();
      const auto it = body.nodes->find(name);
      if (it == body.nodes->end() || !seen.insert(name).second) continue;
      const proto::NodeDef& node = *it->second;
      if (const proto::FunctionDef* called = CalledBy(node)) {
        if (!Call(body, node, *called)) return false;
        continue;
      }
      if (node.op() == "AssignVariableOp" || node.op() == "Assign" || node.op() == "LookupTableImportV2") {
        if (!Fill(body, node)) return false;
        continue;
      }
      if (node.op() != "NoOp" && node.op() != "Identity") return false;
      for (const std::string& input : node.input()) todo.push_back(NodeOf(input));
    }
    return true;
  }

 private:
  const proto::FunctionDef* CalledBy(const proto::NodeDef& node) const {
    if (node.op() == "StatefulPartitionedCall" || node.op() == "PartitionedCall") {
      const auto f = node.attr().find("f");
      return f == node.attr().end() ? nullptr : needed_.function(f->second.func().name());
    }
    return needed_.function(node.op());
  }

  bool Call(const Body& body, const proto::NodeDef& node, const proto::FunctionDef& f) {
    constexpr int kDeepest = 16;
    if (depth_ == kDeepest) return false;
    const NodeMap nodes = ByName(f.node_def());
    Body inner{&nodes, {}};
    int i = 0;
    for (const auto& arg : f.signature().input_arg()) {
      if (i >= node.input_size() || !arg.number_attr().empty() || !arg.type_list_attr().empty()) return false;
      inner.arguments[arg.name()] = Resolve(body, node.input(i++));
    }
    ++depth_;
    bool good = true;
    // All nodes with an effect: bodies that tracing made keep them by control results.
    for (const auto& [result, name] : f.control_ret()) good = good && Run(inner, name);
    for (const auto& [result, value] : f.ret()) good = good && Run(inner, NodeOf(value));
    for (const proto::NodeDef& n : f.node_def()) {
      const bool fills = n.op() == "AssignVariableOp" || n.op() == "LookupTableImportV2";
      good = good && (!fills || filled_.count(&n) != 0 || Fill(inner, n));
    }
    --depth_;
    return good;
  }

  // Follows Identity nodes; returns the value of the main graph for an argument of a function.
  std::string Resolve(const Body& body, std::string_view value) const {
    constexpr int kMostSteps = 100;
    std::string at(value);
    for (int i = 0; i < kMostSteps; ++i) {
      const auto argument = body.arguments.find(NodeOf(at));
      if (argument != body.arguments.end()) return argument->second;
      const auto node = body.nodes->find(NodeOf(at));
      if (node == body.nodes->end() || node->second->op() != "Identity" || node->second->input_size() == 0) break;
      at = node->second->input(0);
    }
    return at;
  }

  // Returns string i of a constant; false if the value is no constant of strings.
  static bool StringOf(const Body& body, std::string_view value, int i, std::string* text) {
    const auto node = body.nodes->find(NodeOf(value));
    if (node == body.nodes->end() || node->second->op() != "Const") return false;
    const auto attr = node->second->attr().find("value");
    if (attr == node->second->attr().end()) return false;
    const auto& strings = attr->second.tensor().string_val();
    if (strings.empty()) return text->clear(), true;               // empty strings may be left out
    *text = strings[i < strings.size() ? i : strings.size() - 1];  // the last one stands for the rest
    return true;
  }

  bool Fill(const Body& body, const proto::NodeDef& node) {
    if (!filled_.insert(&node).second) return true;
    Filled f;
    f.op = node.op();
    std::vector<std::string> inputs;
    for (const std::string& input : node.input()) {
      if (!input.starts_with('^')) inputs.push_back(Resolve(body, input));
    }
    if (inputs.size() < 2 || PortOf(inputs[0]) != 0) return false;
    f.target = NodeOf(inputs[0]);
    if (needed_.nodes().count(f.target) == 0) return false;
    for (size_t i = 1; i < inputs.size(); ++i) {
      const auto from = body.nodes->find(NodeOf(inputs[i]));
      if (from == body.nodes->end() || from->second->op() != "RestoreV2" || from->second->input_size() < 3) return false;
      Filled::Part part;
      if (!StringOf(body, from->second->input(1), PortOf(inputs[i]), &part.key) || part.key.empty()) return false;
      if (!StringOf(body, from->second->input(2), PortOf(inputs[i]), &part.slice)) return false;
      f.parts.push_back(std::move(part));
    }
    all_.push_back(std::move(f));
    return true;
  }

  const Needed& needed_;
  std::vector<Filled>& all_;
  std::unordered_set<const proto::NodeDef*> filled_;
  int depth_ = 0;
};

int64_t NumberOf(std::string_view text, const std::string& slice) {
  int64_t n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw Error{TW_INVALID_ARGUMENT, "the restore operation has the slice '" + slice + "', which is none; expected '10 5 0,5:-'"};
  }
  return n;
}

// "10 5 0,5:-": the sizes of the whole tensor, then start and length, or all, of each axis.
struct Slice {
  std::vector<int64_t> dims, starts, sizes;
  explicit Slice(const std::string& text) {
    std::string_view rest = text;
    for (size_t space; (space = rest.find(' ')) != rest.npos; rest.remove_prefix(space + 1))
      dims.push_back(NumberOf(rest.substr(0, space), text));
    while (!rest.empty()) {
      const std::string_view part = rest.substr(0, rest.find(':'));
      rest.remove_prefix(std::min(rest.size(), part.size() + 1));
      const size_t comma = part.find(',');
      const bool all = part == "-";
      if (!all && comma == part.npos) NumberOf("", text);
      starts.push_back(all ? 0 : NumberOf(part.substr(0, comma), text));
      sizes.push_back(all ? -1 : NumberOf(part.substr(comma + 1), text));
    }
    if (starts.size() != dims.size()) NumberOf("", text);
  }
};

class Checkpoint {
 public:
  Checkpoint(const tw_host* host, const std::string& prefix)
      : host_(host), api_(static_cast<const tw_checkpoint_api*>(host->query(host, TW_S(TW_CHECKPOINT_SET), 1))) {
    if (!api_) throw Error{TW_UNIMPLEMENTED, "the runtime cannot read checkpoints"};
    Check(api_->open(host, prefix.data(), prefix.size(), &reader_));
  }
  Checkpoint(const Checkpoint&) = delete;
  ~Checkpoint() {
    if (reader_) api_->close(reader_);
  }
  TensorPtr Read(const Filled::Part& part) const {
    tw_tensor* t = nullptr;
    if (part.slice.empty()) {
      Check(api_->read(reader_, part.key.data(), part.key.size(), &t));
    } else {
      const Slice s(part.slice);
      Check(api_->read_part(reader_, part.key.data(), part.key.size(), s.dims.data(), s.starts.data(), s.sizes.data(),
                            static_cast<int32_t>(s.dims.size()), &t));
    }
    return TensorPtr(t, TensorRelease{host_});
  }

 private:
  const tw_host* const host_;
  const tw_checkpoint_api* const api_;
  tw_checkpoint_reader* reader_ = nullptr;
};

}  // namespace

bool TraceRestore(const proto::GraphDef& graph, const Needed& needed, const std::string& restore_op, std::vector<Filled>* all) {
  const NodeMap nodes = ByName(graph.node());
  if (nodes.count(NodeOf(restore_op)) == 0) {
    throw Error{TW_NOT_FOUND, "the restore operation is '" + restore_op + "', but the graph has no such operation"};
  }
  const Body main{&nodes, {}};
  return Tracer(needed, all).Run(main, NodeOf(restore_op));
}

void Restore(const std::vector<Filled>& all, const Needed& needed, const std::string& prefix, Sink* sink) {
  std::vector<tw_edge> feeds, effects;
  std::vector<TensorPtr> values;
  std::unique_ptr<Checkpoint> checkpoint;
  for (const Filled& f : all) {
    if (!needed.has(f.target)) continue;
    if (!checkpoint) checkpoint = std::make_unique<Checkpoint>(sink->host(), prefix);
    std::vector<tw_edge> in{sink->Find(f.target)};
    for (const Filled::Part& part : f.parts) {
      values.push_back(checkpoint->Read(part));
      const tw_view& view = *sink->host()->tensor->view(values.back().get());
      feeds.push_back(sink->Input("restored/" + part.key, view.dtype, view));
      in.push_back(feeds.back());
    }
    effects.push_back(sink->Emit(f.op, in, "restore/" + f.target));
  }
  if (!effects.empty()) sink->Step(feeds, values, effects);
}

}  // namespace thalweg::savedmodel
