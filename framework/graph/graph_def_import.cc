#include <algorithm>
#include <queue>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "framework/base/shown.h"
#include "framework/graph/attr_proto.h"
#include "framework/graph/flow.h"
#include "framework/graph/function.h"
#include "framework/graph/function_def.h"
#include "framework/graph/function_signature.h"
#include "framework/graph/graph_def.h"
#include "framework/graph/graph_def_fields.h"
#include "framework/graph/name_index.h"
#include "framework/graph/node_links.h"
#include "framework/io/wire.h"
#include "framework/registry/registry.h"
#include "framework/runtime/runtime.h"

namespace thalweg {
namespace {

using namespace graph_def;

constexpr int32_t kControl = -1;
constexpr int32_t kBack = -2;  // output 0 of a NextIteration, which closes a loop

// Where an input comes from: output `port` of the node with that number in the file, or kControl or kBack.
struct Source {
  int32_t node = 0, port = 0;
  std::string_view argument;  // of the body of a function: the port counts within the values of that output argument
};

// Part of an array that all nodes share.
struct Range {
  uint32_t begin = 0, end = 0;
};

// A NodeDef. The views lead into the imported bytes.
struct StoredNode {
  std::string_view name, op, device;  // the name without the prefix
  const OpSchema* schema = nullptr;   // NULL: no plugin defines it
  Range inputs, attrs;
  std::string unknown;
};

// An attribute's name and AttrValue message.
using StoredAttr = std::pair<std::string_view, std::string_view>;

// Names of attributes and devices: what a proto3 string may hold and a message can show.
bool IsPlainText(std::string_view s) {
  return std::all_of(s.begin(), s.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

// "x" -> (x, 0), "x:2" -> (x, 2), "^x" -> (x, kControl). False for anything else, but the name may be none.
bool SplitInput(std::string_view text, std::string_view* name, int32_t* port) {
  *port = 0;
  if (text.substr(0, 1) == "^") {
    *port = kControl;
    text.remove_prefix(1);
  } else if (const size_t colon = text.rfind(':'); colon != text.npos) {
    const std::string_view digits = text.substr(colon + 1);
    if (digits.empty() || digits.size() > 6) return false;
    for (char c : digits) {
      if (c < '0' || c > '9') return false;
      *port = *port * 10 + (c - '0');
    }
    text = text.substr(0, colon);
  }
  *name = text;
  return true;
}

// What a node that has a function's name as its op calls, and with which values of the function's attributes.
struct DirectCall {
  std::string bytes;  // the function
  FunctionSignature signature;
  CallOutputs outputs;
  std::vector<uint32_t> in_types, out_types;
  std::string function;
};

class Importer {
 public:
  Importer(const ImportOptions& options, Graph* graph) : options_(options), graph_(graph), scratch_(graph->runtime_ptr()) {
    if (!options.prefix.empty()) scope_ = options.prefix.back() == '/' ? options.prefix : options.prefix + "/";
    splat_.left = options.max_splat_bytes;
  }

  Status Run(std::string_view bytes) {
    if (!scope_.empty() && !IsNodeName(scope_)) return InvalidArgument("prefix '", options_.prefix, "' is not the start of a node name");
    if (bytes.size() > options_.max_bytes) {
      return ResourceExhausted("the graph has ", bytes.size(), " bytes; at most ", options_.max_bytes, " may be imported");
    }
    RETURN_IF_ERROR(ReadGraph(bytes));
    RETURN_IF_ERROR(CheckVersions());
    RETURN_IF_ERROR(IndexNames());
    RETURN_IF_ERROR(ForEachFunction(extras_.library, [this](const std::string& name, std::string_view def) {
      functions_.emplace(name, def);
      return Status();
    }));
    sources_.resize(inputs_.size());
    for (StoredNode& n : nodes_) n.schema = OpOf(n.op);
    for (const StoredNode& n : nodes_) RETURN_IF_ERROR(FindSources(n));
    RETURN_IF_ERROR(Sort());
    made_.resize(nodes_.size());
    for (int32_t i : order_) RETURN_IF_ERROR(Build(i));
    RETURN_IF_ERROR(CloseLoops());
    RETURN_IF_ERROR(TieNodes());
    const auto functions = graph_->functions();
    if (functions) RETURN_IF_ERROR(functions->Check(extras_.library));
    // Everything is known to be good; what fails now is a name that the graph has already.
    RETURN_IF_ERROR(graph_->Adopt(&scratch_, extras_));
    return functions ? functions->Store(extras_.library) : Status();
  }

 private:
  Status ReadGraph(std::string_view bytes);
  Status ReadVersions(std::string_view bytes);
  Status ReadNode(std::string_view bytes);
  Status ReadAttr(std::string_view bytes);
  Status ReadInput(std::string_view text);
  Status CountListed(size_t n);
  Status SortAttrs(const StoredNode& node);
  Status CheckVersions() const;
  Status IndexNames();
  Status FindSources(const StoredNode& node);
  Status FindBackEdges(const StoredNode& node);
  Status Sort();
  Status DescribeCycle(const std::vector<uint32_t>& waits_for) const;
  Status Build(int32_t i);
  StatusOr<const DirectCall*> FindCall(const StoredNode& node);
  Status BuildCall(const StoredNode& node, const DirectCall& call, NodeSpec* spec);
  StatusOr<std::string> StoredFunction(std::string_view name);
  StatusOr<std::string> FunctionFor(std::string_view name, const AttrMessages& attrs);
  Status SetFunctions(std::string_view message, AttrValue* value);
  Status AddInput(const StoredNode& node, uint32_t at, NodeSpec* spec);
  Status CloseLoops();
  Status TieNodes();
  Status SetInputs(const StoredNode& node, NodeSpec* spec);
  Status SetAttr(const OpSchema& op, const StoredAttr& attr, std::vector<AttrValue>* values, NodeSpec* spec);
  Status SetColocation(std::string_view message, NodeSpec* spec);
  std::string NameOf(const StoredNode& n) const { return StrCat(scope_, n.name); }
  std::string Title(const StoredNode& n) const { return StrCat(NodeTitle(n.op, NameOf(n), ""), ":"); }
  std::span<const Source> SourcesOf(const StoredNode& n) const {
    return std::span(sources_).subspan(n.inputs.begin, n.inputs.end - n.inputs.begin);
  }
  int32_t Find(std::string_view name) const {
    return by_name_.Find(name, [this](int32_t i) { return nodes_[size_t(i)].name; });
  }
  const OpSchema* OpOf(std::string_view name);
  Flow FlowOfOp(const OpSchema* op);

  const ImportOptions& options_;
  Graph* graph_;
  Graph scratch_;  // where nodes are made until all are good
  GraphExtras extras_{0, 0, {}, {}, {}};
  std::string scope_;
  SplatBudget splat_;
  std::vector<StoredNode> nodes_;
  std::vector<std::string_view> inputs_;  // of all nodes
  size_t listed_ = 0;                     // inputs that lists stand for
  std::vector<Source> sources_;           // of all inputs
  std::vector<StoredAttr> attrs_;         // of all nodes
  NameIndex by_name_;
  std::unordered_map<std::string_view, const OpSchema*> ops_;  // that were looked up
  std::vector<int32_t> order_;
  std::vector<const Node*> made_;
  std::map<std::string, std::string_view, std::less<>> functions_;  // of the file
  std::map<std::string_view, DirectCall> calls_;                    // by node
};

Status Damaged(std::string_view what, const WireReader& reader) {
  return InvalidArgument(what, " is damaged or cut short at its byte ", reader.offset());
}

Status Importer::ReadGraph(std::string_view bytes) {
  constexpr size_t kUsualNode = 128;  // bytes
  nodes_.reserve(bytes.size() / kUsualNode);
  inputs_.reserve(bytes.size() / kUsualNode * 2);
  attrs_.reserve(bytes.size() / kUsualNode * 3);
  WireReader reader(bytes);
  for (WireField f; reader.Next(&f);) {
    if (f.number == kNode && f.type == WireField::kBytes) {
      if (nodes_.size() >= options_.max_nodes) return ResourceExhausted("the graph has more than ", options_.max_nodes, " nodes");
      RETURN_IF_ERROR(ReadNode(f.bytes));
    } else if (f.number == kLibrary && f.type == WireField::kBytes) {
      extras_.library += f.bytes;
    } else if (f.number == kVersions && f.type == WireField::kBytes) {
      RETURN_IF_ERROR(ReadVersions(f.bytes));
    } else {
      extras_.unknown_fields += f.raw;
    }
  }
  if (!reader.ok()) return Damaged("the GraphDef", reader);
  return Status();
}

Status Importer::ReadVersions(std::string_view bytes) {
  GraphExtras* v = &extras_;
  WireReader reader(bytes);
  for (WireField f; reader.Next(&f);) {
    if (f.number == kProducer && f.type == WireField::kVarint) v->producer = int32_t(f.value);
    if (f.number == kMinConsumer && f.type == WireField::kVarint) v->min_consumer = int32_t(f.value);
    if (f.number != kBadConsumers) continue;
    if (f.type == WireField::kVarint) v->bad_consumers.push_back(int32_t(f.value));
    if (f.type != WireField::kBytes) continue;
    const char *p = f.bytes.data(), *end = p + f.bytes.size();
    for (uint64_t one; p < end; v->bad_consumers.push_back(int32_t(one))) {
      if (!GetVarint(&p, end, &one)) return Damaged("the list of bad consumers", reader);
    }
  }
  return reader.ok() ? Status() : Damaged("the VersionDef", reader);
}

Status Importer::CheckVersions() const {
  const GraphExtras& v = extras_;
  if (v.min_consumer > kGraphVersion) {
    return FailedPrecondition("the graph asks for a reader of version ", v.min_consumer, " or later, this runtime is version ",
                              kGraphVersion, "; use a newer one");
  }
  if (std::find(v.bad_consumers.begin(), v.bad_consumers.end(), kGraphVersion) != v.bad_consumers.end()) {
    return FailedPrecondition("the graph says that readers of version ", kGraphVersion, ", which this runtime is, misread it; use another");
  }
  return Status();
}

Status Importer::ReadNode(std::string_view bytes) {
  StoredNode node;
  node.inputs.begin = uint32_t(inputs_.size());
  node.attrs.begin = uint32_t(attrs_.size());
  WireReader reader(bytes);
  Status s;
  for (WireField f; s.ok() && reader.Next(&f);) {
    const bool is_text = f.type == WireField::kBytes;
    if (is_text && f.number == kName)
      node.name = f.bytes;
    else if (is_text && f.number == kOp)
      node.op = f.bytes;
    else if (is_text && f.number == kInput)
      s = ReadInput(f.bytes);
    else if (is_text && f.number == kDevice)
      node.device = f.bytes;
    else if (is_text && f.number == kAttr)
      s = ReadAttr(f.bytes);
    else
      node.unknown += f.raw;
  }
  node.inputs.end = uint32_t(inputs_.size());
  node.attrs.end = uint32_t(attrs_.size());
  if (!IsNodeName(node.name)) {
    const std::string number = StrCat("node number ", nodes_.size(), " of the GraphDef");
    return reader.ok()
               ? InvalidArgument(number, " has the name '", Shown(IsPlainText(node.name) ? node.name : "?"), "', which is not a node name")
               : Damaged(number, reader);
  }
  if (s.ok() && !reader.ok()) s = Damaged("the NodeDef", reader);
  if (!s.ok()) return Prefix(s, Title(node));
  if (node.op.empty() || !IsPlainText(node.op)) return InvalidArgument("node '", Shown(NameOf(node)), "' has no op");
  if (!IsPlainText(node.device)) return InvalidArgument(Title(node), " the device name is not plain text");
  RETURN_IF_ERROR(SortAttrs(node));
  nodes_.push_back(std::move(node));
  return Status();
}

// An argument that stands for several values is as many inputs.
Status Importer::ReadInput(std::string_view text) {
  auto list = options_.lists.find(text);
  if (list == options_.lists.end()) {
    inputs_.push_back(text);
    return Status();
  }
  RETURN_IF_ERROR(CountListed(list->second.size()));
  inputs_.insert(inputs_.end(), list->second.begin(), list->second.end());
  return Status();
}

// Few words may stand for many inputs.
Status Importer::CountListed(size_t n) {
  constexpr size_t kMost = 1 << 20;
  listed_ += n;
  return listed_ <= kMost ? Status() : ResourceExhausted("lists of values stand for more than ", kMost, " inputs");
}

Status Importer::ReadAttr(std::string_view bytes) {
  std::string_view key, value;
  bool has_value = false;
  WireReader reader(bytes);
  for (WireField f; reader.Next(&f);) {
    if (f.type != WireField::kBytes) continue;
    if (f.number == kKey) key = f.bytes;
    if (f.number != kValue) continue;
    if (std::exchange(has_value, true)) return InvalidArgument("attribute '", Shown(key), "' has two values");
    value = f.bytes;
  }
  if (!reader.ok()) return Damaged(StrCat("attribute '", Shown(IsPlainText(key) ? key : "?"), "'"), reader);
  if (key.empty() || !IsPlainText(key)) return InvalidArgument("an attribute's name is empty or not plain text");
  attrs_.emplace_back(key, value);
  return Status();
}

Status Importer::SortAttrs(const StoredNode& node) {
  const auto begin = attrs_.begin() + node.attrs.begin, end = attrs_.begin() + node.attrs.end;
  std::sort(begin, end, [](const auto& a, const auto& b) { return a.first < b.first; });
  const auto twice = std::adjacent_find(begin, end, [](const auto& a, const auto& b) { return a.first == b.first; });
  return twice == end ? Status() : InvalidArgument(Title(node), " attribute '", Shown(twice->first), "' is set twice");
}

Status Importer::IndexNames() {
  by_name_.Reserve(nodes_.size());
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const int32_t other = by_name_.FindOrAdd(nodes_[i].name, int32_t(i), [this](int32_t k) { return nodes_[size_t(k)].name; });
    if (other != NameIndex::kNone) {
      return InvalidArgument(Title(nodes_[i]), " node number ", other, " of the GraphDef, ", Shown(nodes_[size_t(other)].op),
                             ", has the same name; names must differ");
    }
  }
  return Status();
}

Status Importer::FindSources(const StoredNode& node) {
  bool control_seen = false;
  for (uint32_t at = node.inputs.begin; at < node.inputs.end; ++at) {
    const std::string_view text = inputs_[at];
    const uint32_t i = at - node.inputs.begin;
    std::string_view name;
    Source& source = sources_[at];
    const bool is_input =
        options_.function_body ? SplitBodyInput(text, &name, &source.argument, &source.port) : SplitInput(text, &name, &source.port);
    source.node = is_input ? Find(name) : NameIndex::kNone;
    if (source.node == NameIndex::kNone && (!is_input || !IsNodeName(name))) {
      return InvalidArgument(Title(node), " input ", i, " is '", Shown(IsPlainText(text) ? text : "?"),
                             "', which is none of 'node', 'node:1' and '^node'");
    }
    if (control_seen && source.port != kControl) {
      return InvalidArgument(Title(node), " input ", i, " is '", Shown(text), "' but stands behind a control input; those must come last");
    }
    if (source.node == NameIndex::kNone) {
      return InvalidArgument(Title(node), " input ", i, " is '", Shown(text), "', but the GraphDef has no node '", Shown(name), "'");
    }
    control_seen = source.port == kControl;
  }
  return FlowOfOp(node.schema) == Flow::kMerge ? FindBackEdges(node) : Status();
}

// As what it runs. op: NULL: none is known.
Flow Importer::FlowOfOp(const OpSchema* op) {
  if (op && !op->runs_as.empty()) op = OpOf(op->runs_as);
  return op ? FlowOf(*op) : Flow::kNone;
}

// Of a merge. What comes from a NextIteration is there an iteration later, so nothing waits for it when nodes are put in order.
Status Importer::FindBackEdges(const StoredNode& node) {
  bool forward = false, back = false;
  for (uint32_t at = node.inputs.begin; at < node.inputs.end; ++at) {
    Source& s = sources_[at];
    const bool is_back = s.port == 0 && FlowOfOp(nodes_[size_t(s.node)].schema) == Flow::kNextIteration;
    if (is_back) s.port = kBack;
    back = back || is_back;
    forward = forward || s.port >= 0;
  }
  if (!back || forward) return Status();
  return InvalidArgument(Title(node), " all its inputs come from a NextIteration; one must come from without the loop");
}

// Each node after those that it needs; among those that could come next, the first of the file.
Status Importer::Sort() {
  const size_t n = nodes_.size();
  std::vector<uint32_t> waits_for(n), users_at(n + 1), fill;
  for (size_t i = 0; i < n; ++i) {
    for (const Source& s : SourcesOf(nodes_[i])) {
      if (s.port == kBack) continue;
      ++waits_for[i];
      ++users_at[size_t(s.node) + 1];
    }
  }
  for (size_t i = 0; i < n; ++i) users_at[i + 1] += users_at[i];
  std::vector<int32_t> users(users_at[n]);
  fill.assign(users_at.begin(), users_at.end() - 1);
  for (size_t i = 0; i < n; ++i) {
    for (const Source& s : SourcesOf(nodes_[i])) {
      if (s.port != kBack) users[fill[size_t(s.node)]++] = int32_t(i);
    }
  }
  std::priority_queue<int32_t, std::vector<int32_t>, std::greater<>> ready;
  for (size_t i = 0; i < n; ++i) {
    if (waits_for[i] == 0) ready.push(int32_t(i));
  }
  order_.reserve(n);
  while (!ready.empty()) {
    const int32_t i = ready.top();
    ready.pop();
    order_.push_back(i);
    for (uint32_t u = users_at[size_t(i)]; u < users_at[size_t(i) + 1]; ++u) {
      if (--waits_for[size_t(users[u])] == 0) ready.push(users[u]);
    }
  }
  return order_.size() == n ? Status() : DescribeCycle(waits_for);
}

// Whoever still waits has an input that still waits: going from input to input must come round.
Status Importer::DescribeCycle(const std::vector<uint32_t>& waits_for) const {
  constexpr size_t kNamesShown = 8;
  std::vector<int32_t> path;
  std::vector<bool> seen(nodes_.size());
  int32_t at = int32_t(std::find_if(waits_for.begin(), waits_for.end(), [](uint32_t w) { return w > 0; }) - waits_for.begin());
  while (!seen[size_t(at)]) {
    seen[size_t(at)] = true;
    path.push_back(at);
    for (const Source& s : SourcesOf(nodes_[size_t(at)])) {
      if (s.port == kBack || waits_for[size_t(s.node)] == 0) continue;
      at = s.node;
      break;
    }
  }
  path.erase(path.begin(), std::find(path.begin(), path.end(), at));
  std::reverse(path.begin(), path.end());  // now in the direction of the data
  std::string text;
  for (size_t i = 0; i < path.size() && i < kNamesShown; ++i) text += StrCat("'", Shown(NameOf(nodes_[size_t(path[i])])), "' -> ");
  if (path.size() > kNamesShown) text += StrCat("(", path.size() - kNamesShown, " more) -> ");
  const StoredNode& first = nodes_[size_t(path[0])];
  return InvalidArgument(Title(first), " ", path.size(), " nodes form a cycle: ", text, "'", Shown(NameOf(first)),
                         "'; a loop leads through a NextIteration to a Merge");
}

Status Importer::SetColocation(std::string_view message, NodeSpec* spec) {
  std::vector<std::string> others;
  RETURN_IF_ERROR(ParseColocation(message, &spec->colocate_with, &others));
  for (std::string& name : spec->colocate_with) {
    const bool stored = Find(name) != NameIndex::kNone;
    name = scope_ + name;
    if (!stored && !graph_->Find(name)) return InvalidArgument("there is no node '", Shown(name), "' to be placed with");
  }
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

// A function's FunctionDef, of the file or of the graph that it is read into.
StatusOr<std::string> Importer::StoredFunction(std::string_view name) {
  if (auto it = functions_.find(name); it != functions_.end()) return std::string(it->second);
  const auto library = graph_->functions();
  if (!library) return FailedPrecondition("the graph around this one is gone");
  return library->Stored(name);
}

// The name by which a function is found that has these values for its attributes. Others than its own say nothing of it.
StatusOr<std::string> Importer::FunctionFor(std::string_view name, const AttrMessages& attrs) {
  const auto stored = StoredFunction(name);
  const auto library = graph_->functions();
  if (!stored.ok() || !library) return std::string(name);  // whoever calls it says so
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
  spec->inputs.reserve(node.inputs.end - node.inputs.begin);
  for (uint32_t at = node.inputs.begin; at < node.inputs.end; ++at) RETURN_IF_ERROR(AddInput(node, at, spec));
  return Status();
}

Status Importer::AddInput(const StoredNode& node, uint32_t at, NodeSpec* spec) {
  // What closes a loop is not there yet: see CloseLoops. Until then another input stands in, of the same type as all of a merge.
  const std::span<const Source> all = SourcesOf(node);
  const Source& s = sources_[at].port == kBack ? *std::find_if(all.begin(), all.end(), [](auto& o) { return o.port >= 0; }) : sources_[at];
  const Node* from = made_[size_t(s.node)];
  if (s.port == kControl) {
    spec->controls.push_back(from);
    return Status();
  }
  std::pair<int32_t, int32_t> outputs(0, from->n_out());
  if (!s.argument.empty()) {
    auto call = calls_.find(nodes_[size_t(s.node)].name);
    outputs = OutputsOf(*from, s.argument, call == calls_.end() ? nullptr : &call->second.outputs);
  }
  if (outputs.first >= 0 && s.port == kAllPorts) {
    RETURN_IF_ERROR(CountListed(size_t(outputs.second - outputs.first)));
    for (int32_t o = outputs.first; o < outputs.second; ++o) spec->inputs.push_back({from, o});
  } else if (outputs.first >= 0 && s.port < outputs.second - outputs.first) {
    spec->inputs.push_back({from, outputs.first + s.port});
  } else {
    return InvalidArgument(Title(node), " input ", at - node.inputs.begin, " is '", Shown(inputs_[at]), "', but ", from->title(), " has ",
                           from->n_out(), " outputs");
  }
  return Status();
}

// NULL: no plugin defines it.
const OpSchema* Importer::OpOf(std::string_view name) {
  auto [at, is_new] = ops_.emplace(name, nullptr);
  if (is_new) at->second = graph_->runtime().registry().FindOp(name);
  return at->second;
}

Status Importer::Build(int32_t i) {
  StoredNode& node = nodes_[size_t(i)];
  NodeSpec spec;
  spec.name = scope_;
  spec.name += node.name;
  const OpSchema* op = node.schema;
  const DirectCall* call = nullptr;
  if (!op) {
    ASSIGN_OR_RETURN(call, FindCall(node));
  }
  if (!op && !call) {
    spec.op = node.op;
    return scratch_.AddNode(std::move(spec)).status();  // which says what to do about it
  }
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
  for (uint32_t k = node.attrs.begin; k < node.attrs.end; ++k) {
    Status s = SetAttr(*op, attrs_[k], &values, &spec);
    if (!s.ok()) return Prefix(s, StrCat(Title(node), " attribute '", Shown(attrs_[k].first), "':"));
  }
  ASSIGN_OR_RETURN(made_[size_t(i)], scratch_.AddNode(*op, std::move(values), std::move(spec)));
  return Status();
}

// NULL: the node's op is no function either.
StatusOr<const DirectCall*> Importer::FindCall(const StoredNode& node) {
  auto stored = StoredFunction(node.op);
  if (stored.status().code() == absl::StatusCode::kNotFound) return nullptr;
  RETURN_IF_ERROR(stored.status());
  DirectCall& call = calls_[node.name];
  call.bytes = *std::move(stored);
  ASSIGN_OR_RETURN(call.signature, FunctionSignature::Read(call.bytes));
  AttrMessages given;
  for (uint32_t k = node.attrs.begin; k < node.attrs.end; ++k) given.emplace(attrs_[k].first, attrs_[k].second);
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

// It becomes the op that calls functions.
Status Importer::BuildCall(const StoredNode& node, const DirectCall& call, NodeSpec* spec) {
  ASSIGN_OR_RETURN(const OpSchema* op, graph_->runtime().registry().FindRole(call.signature.stateful ? "call" : "stateless_call"));
  spec->op = op->name;
  spec->attrs["Tin"] = AttrValue::Types(call.in_types);
  spec->attrs["Tout"] = AttrValue::Types(call.out_types);
  spec->attrs["f"] = AttrValue::Func(call.function);
  spec->extra_attrs[kOpAsWritten] = node.op;
  for (uint32_t k = node.attrs.begin; k < node.attrs.end; ++k) {
    const auto& [name, message] = attrs_[k];
    if (name == "_class") {
      RETURN_IF_ERROR(SetColocation(message, spec));
    } else {
      spec->extra_attrs.emplace(name, message);
    }
  }
  return Status();
}

Status Importer::CloseLoops() {
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const std::span<const Source> sources = SourcesOf(nodes_[i]);
    for (size_t k = 0; k < sources.size(); ++k) {
      if (sources[k].port == kBack) RETURN_IF_ERROR(scratch_.CloseLoop(made_[i], int32_t(k), made_[size_t(sources[k].node)]));
    }
  }
  return Status();
}

Status Importer::TieNodes() {
  const auto find = [this](std::string_view name) {
    const int32_t i = Find(name);
    return i == NameIndex::kNone ? nullptr : made_[size_t(i)];
  };
  for (size_t i = 0; i < nodes_.size(); ++i) {
    for (uint32_t k = nodes_[i].attrs.begin; k < nodes_[i].attrs.end; ++k) {
      const auto& [name, message] = attrs_[k];
      if (IsLinkAttr(name)) RETURN_IF_ERROR(TieNode(&scratch_, made_[i], name, message, find));
    }
  }
  return Status();
}

}  // namespace

bool SplitBodyInput(std::string_view text, std::string_view* name, std::string_view* argument, int32_t* port) {
  *argument = {};
  const size_t first = text.find(':');
  if (first == text.npos) return SplitInput(text, name, port);
  *name = text.substr(0, first);
  *argument = text.substr(first + 1);
  *port = kAllPorts;
  if (argument->find(':') != argument->npos && !SplitInput(*argument, argument, port)) return false;
  return !argument->empty() && argument->find(':') == argument->npos && *port != kControl;
}

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
