#include <algorithm>
#include <queue>
#include <unordered_map>
#include <utility>
#include <vector>

#include "framework/graph/attr_proto.h"
#include "framework/graph/graph_def.h"
#include "framework/graph/graph_def_fields.h"
#include "framework/io/wire.h"
#include "framework/registry/registry.h"
#include "framework/runtime/runtime.h"

namespace thalweg {
namespace {

using namespace graph_def;

constexpr int32_t kControl = -1;

// Where an input comes from: output `port` of the node with that number in the file, or kControl.
struct Source {
  int32_t node = 0, port = 0;
};

// A NodeDef. The views lead into the imported bytes.
struct StoredNode {
  std::string name;  // prefix included
  std::string_view op, device;
  std::vector<std::string_view> inputs;
  std::vector<std::pair<std::string_view, std::string_view>> attrs;  // name, AttrValue message
  std::string unknown;
  std::vector<Source> sources;  // data first, then control
  std::string title() const { return StrCat(op, " '", name, "':"); }
};

// Names of attributes and devices: what a proto3 string may hold and a message can show.
bool IsPlainText(std::string_view s) {
  return std::all_of(s.begin(), s.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

// "x" -> (x, 0), "x:2" -> (x, 2), "^x" -> (x, kControl). False for anything else.
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
  return IsNodeName(text);
}

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
    for (StoredNode& n : nodes_) RETURN_IF_ERROR(FindSources(&n));
    RETURN_IF_ERROR(Sort());
    made_.resize(nodes_.size());
    for (int32_t i : order_) RETURN_IF_ERROR(Build(i));
    // Everything is known to be good; what fails now is a name that the graph has already.
    return graph_->Adopt(&scratch_, extras_);
  }

 private:
  Status ReadGraph(std::string_view bytes);
  Status ReadVersions(std::string_view bytes);
  Status ReadNode(std::string_view bytes);
  Status ReadAttr(std::string_view bytes, StoredNode* node);
  Status CheckVersions() const;
  Status IndexNames();
  Status FindSources(StoredNode* node) const;
  Status Sort();
  Status DescribeCycle(const std::vector<uint32_t>& waits_for) const;
  Status Build(int32_t i);
  Status SetAttr(const StoredNode& node, const OpSchema& schema, std::string_view name, std::string_view message, NodeSpec* spec);
  Status SetColocation(std::string_view message, NodeSpec* spec);

  const ImportOptions& options_;
  Graph* graph_;
  Graph scratch_;  // where nodes are made until all are good
  GraphExtras extras_{0, 0, {}, {}, {}};
  std::string scope_;
  SplatBudget splat_;
  std::vector<StoredNode> nodes_;
  std::unordered_map<std::string_view, int32_t> by_name_;
  std::vector<int32_t> order_;
  std::vector<const Node*> made_;
};

Status Damaged(std::string_view what, const WireReader& reader) {
  return InvalidArgument(what, " is damaged or cut short at its byte ", reader.offset());
}

Status Importer::ReadGraph(std::string_view bytes) {
  constexpr size_t kUsualNode = 128;  // bytes
  nodes_.reserve(bytes.size() / kUsualNode);
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
  // The library is kept as it is; at least it must not spoil the graph that it will be written with.
  WireReader library(extras_.library);
  for (WireField f; library.Next(&f);) continue;
  return library.ok() ? Status() : Damaged("the function library", library);
}

Status Importer::ReadVersions(std::string_view bytes) {
  GraphExtras* v = &extras_;
  WireReader reader(bytes);
  for (WireField f; reader.Next(&f);) {
    if (f.number == kProducer && f.type == WireField::kVarint) v->producer = int32_t(f.value);
    if (f.number == kMinConsumer && f.type == WireField::kVarint) v->min_consumer = int32_t(f.value);
    if (f.number != kBadConsumers) continue;
    if (f.type == WireField::kVarint) v->bad_consumers.push_back(int32_t(f.value));
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
  std::string_view name;
  WireReader reader(bytes);
  Status s;
  for (WireField f; s.ok() && reader.Next(&f);) {
    const bool is_text = f.type == WireField::kBytes;
    if (is_text && f.number == kName)
      name = f.bytes;
    else if (is_text && f.number == kOp)
      node.op = f.bytes;
    else if (is_text && f.number == kInput)
      node.inputs.push_back(f.bytes);
    else if (is_text && f.number == kDevice)
      node.device = f.bytes;
    else if (is_text && f.number == kAttr)
      s = ReadAttr(f.bytes, &node);
    else
      node.unknown += f.raw;
  }
  if (!IsNodeName(name)) {
    const std::string number = StrCat("node number ", nodes_.size(), " of the GraphDef");
    return reader.ok() ? InvalidArgument(number, " has the name '", IsPlainText(name) ? name : "?", "', which is not a node name")
                       : Damaged(number, reader);
  }
  node.name = StrCat(scope_, name);
  if (!s.ok()) return Prefix(s, node.title());
  if (!reader.ok()) return Prefix(Damaged("the NodeDef", reader), node.title());
  if (node.op.empty() || !IsPlainText(node.op)) return InvalidArgument("node '", node.name, "' has no op");
  if (!IsPlainText(node.device)) return InvalidArgument(node.title(), " the device name is not plain text");
  std::sort(node.attrs.begin(), node.attrs.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (size_t i = 1; i < node.attrs.size(); ++i) {
    if (node.attrs[i - 1].first == node.attrs[i].first) {
      return InvalidArgument(node.title(), " attribute '", node.attrs[i].first, "' is set twice");
    }
  }
  nodes_.push_back(std::move(node));
  return Status();
}

Status Importer::ReadAttr(std::string_view bytes, StoredNode* node) {
  std::string_view key, value;
  bool has_value = false;
  WireReader reader(bytes);
  for (WireField f; reader.Next(&f);) {
    if (f.type != WireField::kBytes) continue;
    if (f.number == kKey) key = f.bytes;
    if (f.number != kValue) continue;
    if (std::exchange(has_value, true)) return InvalidArgument("attribute '", key, "' has two values");
    value = f.bytes;
  }
  if (!reader.ok()) return Damaged(StrCat("attribute '", IsPlainText(key) ? key : "?", "'"), reader);
  if (key.empty() || !IsPlainText(key)) return InvalidArgument("an attribute's name is empty or not plain text");
  node->attrs.emplace_back(key, value);
  return Status();
}

Status Importer::IndexNames() {
  by_name_.reserve(nodes_.size());
  for (size_t i = 0; i < nodes_.size(); ++i) {
    auto [at, is_new] = by_name_.emplace(nodes_[i].name, int32_t(i));
    if (!is_new) {
      return InvalidArgument(nodes_[i].title(), " node number ", at->second, " of the GraphDef, ", nodes_[size_t(at->second)].op,
                             ", has the same name; names must differ");
    }
  }
  return Status();
}

Status Importer::FindSources(StoredNode* node) const {
  bool control_seen = false;
  for (size_t i = 0; i < node->inputs.size(); ++i) {
    const std::string_view text = node->inputs[i];
    std::string_view name;
    Source source;
    if (!SplitInput(text, &name, &source.port)) {
      return InvalidArgument(node->title(), " input ", i, " is '", IsPlainText(text) ? text : "?",
                             "', which is none of 'node', 'node:1' and '^node'");
    }
    if (control_seen && source.port != kControl) {
      return InvalidArgument(node->title(), " input ", i, " is '", text, "' but stands behind a control input; those must come last");
    }
    control_seen = source.port == kControl;
    auto found = scope_.empty() ? by_name_.find(name) : by_name_.find(StrCat(scope_, name));
    if (found == by_name_.end()) {
      return InvalidArgument(node->title(), " input ", i, " is '", text, "', but the GraphDef has no node '", name, "'");
    }
    source.node = found->second;
    node->sources.push_back(source);
  }
  return Status();
}

// Each node after those that it needs; among those that could come next, the first of the file.
Status Importer::Sort() {
  const size_t n = nodes_.size();
  std::vector<uint32_t> waits_for(n), users_at(n + 1), fill;
  for (size_t i = 0; i < n; ++i) {
    waits_for[i] = uint32_t(nodes_[i].sources.size());
    for (const Source& s : nodes_[i].sources) ++users_at[size_t(s.node) + 1];
  }
  for (size_t i = 0; i < n; ++i) users_at[i + 1] += users_at[i];
  std::vector<int32_t> users(users_at[n]);
  fill.assign(users_at.begin(), users_at.end() - 1);
  for (size_t i = 0; i < n; ++i) {
    for (const Source& s : nodes_[i].sources) users[fill[size_t(s.node)]++] = int32_t(i);
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
    for (const Source& s : nodes_[size_t(at)].sources) {
      if (waits_for[size_t(s.node)] == 0) continue;
      at = s.node;
      break;
    }
  }
  path.erase(path.begin(), std::find(path.begin(), path.end(), at));
  std::reverse(path.begin(), path.end());  // now in the direction of the data
  std::string text;
  for (size_t i = 0; i < path.size() && i < kNamesShown; ++i) text += StrCat("'", nodes_[size_t(path[i])].name, "' -> ");
  if (path.size() > kNamesShown) text += StrCat("(", path.size() - kNamesShown, " more) -> ");
  return InvalidArgument(nodes_[size_t(path[0])].title(), " ", path.size(), " nodes form a cycle: ", text, "'",
                         nodes_[size_t(path[0])].name, "'");
}

Status Importer::SetColocation(std::string_view message, NodeSpec* spec) {
  std::vector<std::string> others;
  RETURN_IF_ERROR(ParseColocation(message, &spec->colocate_with, &others));
  for (std::string& name : spec->colocate_with) {
    name = scope_ + name;
    if (!by_name_.count(name) && !graph_->Find(name)) return InvalidArgument("there is no node '", name, "' to be placed with");
  }
  if (scope_.empty()) {
    spec->extra_attrs.emplace("_class", message);
  } else {
    ASSIGN_OR_RETURN(spec->extra_attrs["_class"], SerializeColocation(spec->colocate_with, others));
  }
  return Status();
}

Status Importer::SetAttr(const StoredNode& node, const OpSchema& schema, std::string_view name, std::string_view message, NodeSpec* spec) {
  if (name == "_class") return SetColocation(message, spec);
  if (name[0] == '_') {
    spec->extra_attrs.emplace(name, message);
    return Status();
  }
  const int at = schema.FindAttr(name);
  if (at < 0) {
    return InvalidArgument("op ", schema.name, " of plugin '", schema.plugin, "' has no such attribute; the graph was written for another ",
                           "version of ", node.op, ": load a plugin with that, or write the graph without it");
  }
  bool whole;
  ASSIGN_OR_RETURN(AttrValue value, ParseAttr(message, schema.attrs[size_t(at)], &splat_, &whole));
  spec->attrs.emplace(name, std::move(value));
  if (!whole) spec->extra_attrs.emplace(name, message);
  return Status();
}

Status Importer::Build(int32_t i) {
  StoredNode& node = nodes_[size_t(i)];
  NodeSpec spec;
  spec.op = node.op;
  spec.name = node.name;
  spec.imported = true;
  spec.device = node.device.empty() ? options_.default_device : std::string(node.device);
  spec.unknown_fields = std::move(node.unknown);
  // An unknown op is for AddNode to report.
  const OpSchema* schema = graph_->runtime().registry().FindOp(node.op);
  for (size_t k = 0; k < node.sources.size() && schema; ++k) {
    const Source& s = node.sources[k];
    const Node* from = made_[size_t(s.node)];
    if (s.port == kControl) {
      spec.controls.push_back(from);
    } else if (s.port < from->n_out()) {
      spec.inputs.push_back({from, s.port});
    } else {
      return InvalidArgument(node.title(), " input ", k, " is '", node.inputs[k], "', but ", from->title(), " has ", from->n_out(),
                             " outputs");
    }
  }
  for (size_t k = 0; k < node.attrs.size() && schema; ++k) {
    const auto& [name, message] = node.attrs[k];
    Status s = SetAttr(node, *schema, name, message, &spec);
    if (!s.ok()) return Prefix(s, StrCat(node.title(), " attribute '", name, "':"));
  }
  ASSIGN_OR_RETURN(made_[size_t(i)], scratch_.AddNode(std::move(spec)));
  return Status();
}

}  // namespace

Status ImportGraphDef(const void* bytes, uint64_t n, const ImportOptions& options, Graph* graph) {
  if (!bytes && n > 0) return InvalidArgument("the graph's bytes are NULL");
  return Importer(options, graph).Run({static_cast<const char*>(bytes), size_t(n)});
}

}  // namespace thalweg
