#include <algorithm>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "framework/base/shown.h"
#include "framework/graph/attr_proto.h"
#include "framework/graph/function.h"
#include "framework/graph/function_def.h"
#include "framework/graph/function_signature.h"
#include "framework/graph/graph_def.h"
#include "framework/graph/graph_def_fields.h"
#include "framework/graph/left_out.h"
#include "framework/graph/node_links.h"
#include "framework/graph/stored_graph.h"
#include "framework/proto/wire.h"

namespace thalweg {
namespace {

// A node whose op is the name of a function: the function called, and the values of its attributes.
struct DirectCall {
  std::string bytes;  // the FunctionDef
  FunctionSignature signature;
  CallOutputs outputs;
  std::vector<uint32_t> in_types, out_types;
  std::string function;
};

class Importer {
 public:
  Importer(const ImportOptions& options, Graph* graph)
      : options_(options),
        graph_(graph),
        scratch_(graph->host_ptr()),
        scope_(options.prefix.empty() || options.prefix.back() == '/' ? options.prefix : options.prefix + "/"),
        stored_(options, scope_, graph->host()) {
    splat_.left = options.max_splat_bytes;
  }

  Status Run(std::string_view bytes) {
    if (!scope_.empty() && !IsNodeName(scope_)) return InvalidArgument("prefix '", options_.prefix, "' is not the start of a node name");
    RETURN_IF_ERROR(stored_.Read(bytes));
    const std::string& library = stored_.extras().library;
    RETURN_IF_ERROR(ForEachFunction(library, [this](const std::string& name, std::string_view def) {
      functions_.emplace(name, def);
      return Status();
    }));
    RETURN_IF_ERROR(stored_.Arrange());
    made_.resize(stored_.nodes().size());
    LeaveOut();
    for (int32_t i : stored_.order()) {
      if (!left_out_[size_t(i)]) RETURN_IF_ERROR(Build(i));
    }
    RETURN_IF_ERROR(CloseLoops());
    RETURN_IF_ERROR(TieNodes());
    const auto functions = graph_->functions();
    if (functions) RETURN_IF_ERROR(functions->Check(library));
    // Everything is valid; only a name that the graph already has can fail now.
    RETURN_IF_ERROR(graph_->Adopt(&scratch_, stored_.extras()));
    RETURN_IF_ERROR(functions ? functions->Store(library) : Status());
    if (std::find(left_out_.begin(), left_out_.end(), true) != left_out_.end()) {
      graph_->host().Log(1, Message(CheckNothingLeftOut(*graph_)));
    }
    return Status();
  }

 private:
  void LeaveOut();
  Status Build(int32_t i);
  Status RefuseOp(const StoredNode& node, NodeSpec spec);
  StatusOr<const DirectCall*> FindCall(const StoredNode& node);
  Status BuildCall(const StoredNode& node, const DirectCall& call, NodeSpec* spec);
  StatusOr<std::string> StoredFunction(std::string_view name);
  StatusOr<std::string> FunctionFor(std::string_view name, const AttrMessages& attrs);
  Status SetFunctions(std::string_view message, AttrValue* value);
  Status SetInputs(const StoredNode& node, NodeSpec* spec);
  Status AddInput(const StoredNode& node, size_t i, NodeSpec* spec);
  Status CloseLoops();
  Status TieNodes();
  Status SetAttr(const OpSchema& op, const StoredAttr& attr, std::vector<AttrValue>* values, NodeSpec* spec);
  Status SetColocation(std::string_view message, NodeSpec* spec);

  const ImportOptions& options_;
  Graph* graph_;
  Graph scratch_;  // holds the new nodes until all of them are valid
  const std::string scope_;
  StoredGraph stored_;
  SplatBudget splat_;
  std::vector<const Node*> made_;
  std::vector<bool> left_out_;
  std::map<std::string, std::string_view, std::less<>> functions_;  // of the file
  std::map<std::string_view, DirectCall> calls_;                    // by node name
  std::map<std::string, std::string> outside_;                      // name of a missing node to the first node that is placed with it
};

Status Importer::SetColocation(std::string_view message, NodeSpec* spec) {
  std::vector<std::string> others;
  RETURN_IF_ERROR(ParseColocation(message, &spec->colocate_with, &others));
  for (std::string& name : spec->colocate_with) {
    const int32_t stored = stored_.Find(name);
    name = scope_ + name;
    if ((stored != NameIndex::kNone && !left_out_[size_t(stored)]) || graph_->Find(name)) continue;
    if (stored == NameIndex::kNone && !options_.function_body)
      return InvalidArgument("there is no node '", Shown(name), "' to be placed with");
    // The name is of the graph around the function, or of a left-out node. As in TensorFlow it then
    // names a group, whose nodes are placed together.
    const auto [first, is_new] = outside_.emplace(name, spec->name);
    name = is_new ? std::string() : first->second;
  }
  std::erase(spec->colocate_with, std::string());
  if (scope_.empty()) {
    spec->extra_attrs.emplace("_class", message);
  } else {
    ASSIGN_OR_RETURN(spec->extra_attrs["_class"], SerializeColocation(spec->colocate_with, others));
  }
  return Status();
}

Status Importer::SetAttr(const OpSchema& op, const StoredAttr& attr, std::vector<AttrValue>* values, NodeSpec* spec) {
  const auto& [name, message] = attr;
  if (name == "_class") return SetColocation(message, spec);
  if (IsLinkAttr(name)) return Status();  // see TieNodes
  if (name[0] == '_') {
    spec->extra_attrs.emplace(name, message);
    return Status();
  }
  const int at = op.FindAttr(name);
  if (at < 0) {
    return InvalidArgument("op ", op.name, " of plugin '", op.plugin, "' has no such attribute; the graph was written for another ",
                           "version of ", op.name, ": load a plugin with that, or write the graph without it");
  }
  bool whole;
  ASSIGN_OR_RETURN((*values)[size_t(at)], ParseAttr(message, op.attrs[size_t(at)], &splat_, &whole));
  if (whole) return Status();
  spec->extra_attrs.emplace(name, message);
  return SetFunctions(message, &(*values)[size_t(at)]);
}

// Returns a function's FunctionDef, from the file or from the target graph.
StatusOr<std::string> Importer::StoredFunction(std::string_view name) {
  if (auto it = functions_.find(name); it != functions_.end()) return std::string(it->second);
  const auto library = graph_->functions();
  if (!library) return FailedPrecondition("the graph around this one is gone");
  return library->Stored(name);
}

// Returns the name of the function instance with these attribute values. Attributes that the
// function does not have are ignored.
StatusOr<std::string> Importer::FunctionFor(std::string_view name, const AttrMessages& attrs) {
  const auto stored = StoredFunction(name);
  const auto library = graph_->functions();
  if (!stored.ok() || !library) return std::string(name);  // the caller of the function gets the error
  ASSIGN_OR_RETURN(const FunctionSignature signature, FunctionSignature::Read(*stored));
  if (signature.attrs.empty()) return std::string(name);
  ASSIGN_OR_RETURN(const AttrMessages own, signature.Attributes(attrs));
  return library->Instance(name, own);
}

Status Importer::SetFunctions(std::string_view message, AttrValue* value) {
  ASSIGN_OR_RETURN(const std::vector<NamedFunction> functions, FunctionsOf(message));
  std::vector<std::string> names;
  for (const NamedFunction& f : functions) {
    ASSIGN_OR_RETURN(names.emplace_back(), FunctionFor(f.name, f.attrs));
  }
  *value = value->is_list() ? AttrValue::Funcs(std::move(names)) : AttrValue::Func(names[0]);
  return Status();
}

Status Importer::SetInputs(const StoredNode& node, NodeSpec* spec) {
  const size_t n = stored_.SourcesOf(node).size();
  spec->inputs.reserve(n);
  for (size_t i = 0; i < n; ++i) RETURN_IF_ERROR(AddInput(node, i, spec));
  return Status();
}

Status Importer::AddInput(const StoredNode& node, size_t i, NodeSpec* spec) {
  // The node that closes a loop may not exist yet: see CloseLoops. Until then another input stands
  // in, because all inputs of a merge have the same type.
  const std::span<const Source> all = stored_.SourcesOf(node);
  const Source& s = all[i].port == Source::kBack ? *std::find_if(all.begin(), all.end(), [](auto& o) { return o.port >= 0; }) : all[i];
  const Node* from = made_[size_t(s.node)];
  if (s.port == Source::kControl) {
    spec->controls.push_back(from);
    return Status();
  }
  std::pair<int32_t, int32_t> outputs(0, from->n_out());
  if (!s.argument.empty()) {
    auto call = calls_.find(stored_.node(s.node).name);
    outputs = OutputsOf(*from, s.argument, call == calls_.end() ? nullptr : &call->second.outputs);
  }
  if (outputs.first >= 0 && s.port == kAllPorts) {
    RETURN_IF_ERROR(stored_.CountListed(size_t(outputs.second - outputs.first)));
    for (int32_t o = outputs.first; o < outputs.second; ++o) spec->inputs.push_back({from, o});
  } else if (outputs.first >= 0 && s.port < outputs.second - outputs.first) {
    spec->inputs.push_back({from, outputs.first + s.port});
  } else {
    return InvalidArgument(stored_.Title(node), " input ", i, " is '", Shown(stored_.input(node, i)), "', but ", from->title(), " has ",
                           from->n_out(), " outputs");
  }
  return Status();
}

Status Importer::Build(int32_t i) {
  StoredNode& node = stored_.nodes()[size_t(i)];
  NodeSpec spec;
  spec.name = scope_;
  spec.name += node.name;
  const OpSchema* op = node.schema;
  const DirectCall* call = nullptr;
  if (!op) {
    ASSIGN_OR_RETURN(call, FindCall(node));
  }
  if (!op && !call) return RefuseOp(node, std::move(spec));
  spec.imported = true;
  spec.device = node.device.empty() ? options_.default_device : std::string(node.device);
  spec.unknown_fields = std::move(node.unknown);
  if (auto handle = options_.handles.find(node.name); handle != options_.handles.end()) spec.handle = handle->second;
  RETURN_IF_ERROR(SetInputs(node, &spec));
  if (call) {
    RETURN_IF_ERROR(BuildCall(node, *call, &spec));
    ASSIGN_OR_RETURN(made_[size_t(i)], scratch_.AddNode(std::move(spec)));
    if (options_.call_outputs) options_.call_outputs->emplace(made_[size_t(i)]->name(), call->outputs);
    return Status();
  }
  std::vector<AttrValue> values(op->attrs.size());
  for (const StoredAttr& attr : stored_.AttrsOf(node)) {
    Status s = SetAttr(*op, attr, &values, &spec);
    if (!s.ok()) return Prefix(s, StrCat(stored_.Title(node), " attribute '", Shown(attr.first), "':"));
  }
  ASSIGN_OR_RETURN(made_[size_t(i)], scratch_.AddNode(*op, std::move(values), std::move(spec)));
  return Status();
}

// Leaves out nodes of undefined ops, and nodes that need them; their bytes are kept for exports.
// Under a prefix those bytes would have to change, and in a function all nodes matter, so there the
// first such node is refused instead.
void Importer::LeaveOut() {
  const std::vector<StoredNode>& nodes = stored_.nodes();
  left_out_.resize(nodes.size());
  if (!scope_.empty() || options_.function_body) return;
  std::map<std::string_view, bool> defined;  // for names that are no plugin's op: whether a function has the name
  bool any = false;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].schema || nodes[i].op.size() > kLongestOpLeftOut) continue;
    const auto [function, is_new] = defined.emplace(nodes[i].op, false);
    if (is_new) function->second = StoredFunction(nodes[i].op).status().code() != absl::StatusCode::kNotFound;
    left_out_[i] = !function->second;
    any = any || left_out_[i];
  }
  for (bool more = any; more;) {  // repeated only if a loop leads back
    more = false;
    for (const int32_t i : stored_.order()) {
      if (left_out_[size_t(i)]) continue;
      for (const Source& s : stored_.SourcesOf(nodes[size_t(i)])) {
        if (left_out_[size_t(s.node)]) left_out_[size_t(i)] = more = true;
      }
    }
  }
  for (size_t i = 0; any && i < nodes.size(); ++i) {
    if (left_out_[i]) PutBytesField(graph_def::kNode, nodes[i].bytes, &stored_.extras().unknown_fields);
  }
}

// Returns the error of adding the node, which says what to do, and appends all other missing ops.
Status Importer::RefuseOp(const StoredNode& node, NodeSpec spec) {
  constexpr size_t kNamed = 20;
  spec.op = node.op;
  const Status refused = scratch_.AddNode(std::move(spec)).status();
  std::map<std::string_view, size_t> others;  // number of nodes per op
  for (const StoredNode& other : stored_.nodes()) {
    if (!other.schema && other.op != node.op && StoredFunction(other.op).status().code() == absl::StatusCode::kNotFound) ++others[other.op];
  }
  if (others.empty()) return refused;
  std::string text;
  size_t named = 0;
  for (const auto& [op, nodes] : others) {
    if (named++ == kNamed) break;
    text += StrCat(text.empty() ? "" : ", ", "'", Shown(op), "' (", nodes, nodes == 1 ? " node)" : " nodes)");
  }
  if (others.size() > kNamed) text += StrCat(" and ", others.size() - kNamed, " more");
  return WithMessage(refused, StrCat(Message(refused), "; nor ", text));
}

// Returns NULL if the node's op is no function either.
StatusOr<const DirectCall*> Importer::FindCall(const StoredNode& node) {
  auto stored = StoredFunction(node.op);
  if (stored.status().code() == absl::StatusCode::kNotFound) return nullptr;
  RETURN_IF_ERROR(stored.status());
  DirectCall& call = calls_[node.name];
  call.bytes = *std::move(stored);
  ASSIGN_OR_RETURN(call.signature, FunctionSignature::Read(call.bytes));
  AttrMessages given;
  for (const auto& [name, message] : stored_.AttrsOf(node)) given.emplace(name, message);
  ASSIGN_OR_RETURN(const AttrMessages own, call.signature.Attributes(given));
  ASSIGN_OR_RETURN(call.function, FunctionFor(node.op, own));
  for (const StoredArg& a : call.signature.args) {
    ASSIGN_OR_RETURN(const std::vector<uint32_t> types, TypesOf(a, own));
    call.in_types.insert(call.in_types.end(), types.begin(), types.end());
  }
  for (const StoredArg& r : call.signature.results) {
    ASSIGN_OR_RETURN(const std::vector<uint32_t> types, TypesOf(r, own));
    const auto first = int32_t(call.out_types.size());
    call.out_types.insert(call.out_types.end(), types.begin(), types.end());
    call.outputs[std::string(r.name)] = {first, int32_t(call.out_types.size())};
  }
  return &call;
}

// Makes the node a call op of the function.
Status Importer::BuildCall(const StoredNode& node, const DirectCall& call, NodeSpec* spec) {
  ASSIGN_OR_RETURN(const OpSchema* op, graph_->host().FindRole(call.signature.stateful ? "call" : "stateless_call"));
  spec->op = op->name;
  spec->attrs["Tin"] = AttrValue::Types(call.in_types);
  spec->attrs["Tout"] = AttrValue::Types(call.out_types);
  spec->attrs["f"] = AttrValue::Func(call.function);
  spec->extra_attrs[kOpAsWritten] = node.op;
  for (const auto& [name, message] : stored_.AttrsOf(node)) {
    if (name == "_class") {
      RETURN_IF_ERROR(SetColocation(message, spec));
    } else {
      spec->extra_attrs.emplace(name, message);
    }
  }
  return Status();
}

Status Importer::CloseLoops() {
  for (size_t i = 0; i < made_.size(); ++i) {
    if (!made_[i]) continue;
    const std::span<const Source> sources = stored_.SourcesOf(stored_.nodes()[i]);
    for (size_t k = 0; k < sources.size(); ++k) {
      if (sources[k].port == Source::kBack) RETURN_IF_ERROR(scratch_.CloseLoop(made_[i], int32_t(k), made_[size_t(sources[k].node)]));
    }
  }
  return Status();
}

Status Importer::TieNodes() {
  const auto find = [this](std::string_view name) {
    const int32_t i = stored_.Find(name);
    return i == NameIndex::kNone ? nullptr : made_[size_t(i)];
  };
  for (size_t i = 0; i < made_.size(); ++i) {
    if (!made_[i]) continue;
    for (const auto& [name, message] : stored_.AttrsOf(stored_.nodes()[i])) {
      if (IsLinkAttr(name)) RETURN_IF_ERROR(TieNode(&scratch_, made_[i], name, message, find));
    }
  }
  return Status();
}

}  // namespace

std::pair<int32_t, int32_t> OutputsOf(const Node& node, std::string_view argument, const CallOutputs* call) {
  if (call) {
    auto at = call->find(argument);
    return at == call->end() ? std::pair(-1, -1) : at->second;
  }
  const int o = node.op().FindOutput(argument);
  if (o < 0) return {-1, -1};
  return {int32_t(node.out_at()[size_t(o)]), int32_t(node.out_at()[size_t(o) + 1])};
}

Status ImportGraphDef(const void* bytes, uint64_t n, const ImportOptions& options, Graph* graph) {
  if (!bytes && n > 0) return InvalidArgument("the graph's bytes are NULL");
  return Importer(options, graph).Run({static_cast<const char*>(bytes), size_t(n)});
}

}  // namespace thalweg
