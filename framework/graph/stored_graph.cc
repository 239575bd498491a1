#include "framework/graph/stored_graph.h"

#include <algorithm>
#include <functional>
#include <queue>

#include "framework/base/shown.h"
#include "framework/graph/graph_def_fields.h"
#include "framework/proto/wire.h"

namespace thalweg {
namespace {

using namespace graph_def;

// Returns true for printable ASCII, which a proto3 string can hold and a message can show. Used for
// names of ops, devices and attributes.
bool IsPlainText(std::string_view s) {
  return std::all_of(s.begin(), s.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

// Splits "x" -> (x, 0), "x:2" -> (x, 2), "^x" -> (x, Source::kControl). Returns false for any other
// syntax; the node may not exist.
bool SplitInput(std::string_view text, std::string_view* name, int32_t* port) {
  *port = 0;
  if (text.substr(0, 1) == "^") {
    *port = Source::kControl;
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

Status Damaged(std::string_view what, const WireReader& reader) {
  return InvalidArgument(what, " is damaged or cut short at its byte ", reader.offset());
}

}  // namespace

Status StoredGraph::Read(std::string_view bytes) {
  if (bytes.size() > options_.max_bytes) {
    return ResourceExhausted("the graph has ", bytes.size(), " bytes; at most ", options_.max_bytes, " may be imported");
  }
  RETURN_IF_ERROR(ReadGraph(bytes));
  RETURN_IF_ERROR(CheckVersions());
  return IndexNames();
}

Status StoredGraph::Arrange() {
  sources_.resize(inputs_.size());
  for (StoredNode& n : nodes_) n.schema = OpOf(n.op);
  for (const StoredNode& n : nodes_) RETURN_IF_ERROR(FindSources(n));
  return Sort();
}

Status StoredGraph::ReadGraph(std::string_view bytes) {
  constexpr size_t kUsualNode = 128;  // bytes
  nodes_.reserve(bytes.size() / kUsualNode);
  inputs_.reserve(bytes.size() / kUsualNode * 2);
  attrs_.reserve(bytes.size() / kUsualNode * 3);
  WireReader reader(bytes);
  for (WireField f; reader.Next(&f);) {
    if (f.number == kNode && f.type == WireField::kVarint) {  // a SavedModel has its schema version in this field
      return InvalidArgument("this is a SavedModel and no GraphDef; give the graph_def of one of its meta_graphs");
    }
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

Status StoredGraph::ReadVersions(std::string_view bytes) {
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

Status StoredGraph::CheckVersions() const {
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

Status StoredGraph::ReadNode(std::string_view bytes) {
  StoredNode node;
  node.bytes = bytes;
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
    if (!reader.ok()) return Damaged(number, reader);
    const bool has_no_name = node.name.empty() && nodes_.empty();  // as in a MetaGraphDef, which has something else in this field
    return InvalidArgument(number, " has the name '", Shown(IsPlainText(node.name) ? node.name : "?"), "', which is not a node name",
                           has_no_name ? "; of a MetaGraphDef, such as a .meta file holds, give the graph_def" : "");
  }
  if (s.ok() && !reader.ok()) s = Damaged("the NodeDef", reader);
  if (!s.ok()) return Prefix(s, Title(node));
  if (node.op.empty() || !IsPlainText(node.op)) return InvalidArgument("node '", Shown(NameOf(node)), "' has no op");
  if (!IsPlainText(node.device)) return InvalidArgument(Title(node), " the device name is not plain text");
  RETURN_IF_ERROR(SortAttrs(node));
  nodes_.push_back(std::move(node));
  return Status();
}

// Adds an input; an argument that stands for several values becomes as many inputs.
Status StoredGraph::ReadInput(std::string_view text) {
  auto list = options_.lists.find(text);
  if (list == options_.lists.end()) {
    inputs_.push_back(text);
    return Status();
  }
  RETURN_IF_ERROR(CountListed(list->second.size()));
  inputs_.insert(inputs_.end(), list->second.begin(), list->second.end());
  return Status();
}

Status StoredGraph::CountListed(size_t n) {
  constexpr size_t kMost = 1 << 20;
  listed_ += n;
  return listed_ <= kMost ? Status() : ResourceExhausted("lists of values stand for more than ", kMost, " inputs");
}

Status StoredGraph::ReadAttr(std::string_view bytes) {
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

Status StoredGraph::SortAttrs(const StoredNode& node) {
  const auto begin = attrs_.begin() + node.attrs.begin, end = attrs_.begin() + node.attrs.end;
  std::sort(begin, end, [](const auto& a, const auto& b) { return a.first < b.first; });
  const auto twice = std::adjacent_find(begin, end, [](const auto& a, const auto& b) { return a.first == b.first; });
  return twice == end ? Status() : InvalidArgument(Title(node), " attribute '", Shown(twice->first), "' is set twice");
}

Status StoredGraph::IndexNames() {
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

Status StoredGraph::FindSources(const StoredNode& node) {
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
    if (control_seen && source.port != Source::kControl) {
      return InvalidArgument(Title(node), " input ", i, " is '", Shown(text), "' but stands behind a control input; those must come last");
    }
    if (source.node == NameIndex::kNone) {
      return InvalidArgument(Title(node), " input ", i, " is '", Shown(text), "', but the GraphDef has no node '", Shown(name), "'");
    }
    control_seen = source.port == Source::kControl;
  }
  return FlowOfOp(node.schema) == Flow::kMerge ? FindBackEdges(node) : Status();
}

// Returns the flow of the op that runs in place of `op`. op: NULL if unknown.
Flow StoredGraph::FlowOfOp(const OpSchema* op) {
  if (op && !op->runs_as.empty()) op = OpOf(op->runs_as);
  return op ? FlowOf(*op) : Flow::kNone;
}

// Marks the back edges of a merge. A value from a NextIteration arrives one iteration later, so the
// order of nodes does not depend on it.
Status StoredGraph::FindBackEdges(const StoredNode& node) {
  bool forward = false, back = false;
  for (uint32_t at = node.inputs.begin; at < node.inputs.end; ++at) {
    Source& s = sources_[at];
    const bool is_back = s.port == 0 && FlowOfOp(nodes_[size_t(s.node)].schema) == Flow::kNextIteration;
    if (is_back) s.port = Source::kBack;
    back = back || is_back;
    forward = forward || s.port >= 0;
  }
  if (!back || forward) return Status();
  return InvalidArgument(Title(node), " all its inputs come from a NextIteration; one must come from without the loop");
}

Status StoredGraph::Sort() {
  const size_t n = nodes_.size();
  std::vector<uint32_t> waits_for(n), users_at(n + 1), fill;
  for (size_t i = 0; i < n; ++i) {
    for (const Source& s : SourcesOf(nodes_[i])) {
      if (s.port == Source::kBack) continue;
      ++waits_for[i];
      ++users_at[size_t(s.node) + 1];
    }
  }
  for (size_t i = 0; i < n; ++i) users_at[i + 1] += users_at[i];
  std::vector<int32_t> users(users_at[n]);
  fill.assign(users_at.begin(), users_at.end() - 1);
  for (size_t i = 0; i < n; ++i) {
    for (const Source& s : SourcesOf(nodes_[i])) {
      if (s.port != Source::kBack) users[fill[size_t(s.node)]++] = int32_t(i);
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

// A node that still waits has an input that still waits, so a walk from input to input must reach a
// cycle.
Status StoredGraph::DescribeCycle(const std::vector<uint32_t>& waits_for) const {
  constexpr size_t kNamesShown = 8;
  std::vector<int32_t> path;
  std::vector<bool> seen(nodes_.size());
  int32_t at = int32_t(std::find_if(waits_for.begin(), waits_for.end(), [](uint32_t w) { return w > 0; }) - waits_for.begin());
  while (!seen[size_t(at)]) {
    seen[size_t(at)] = true;
    path.push_back(at);
    for (const Source& s : SourcesOf(nodes_[size_t(at)])) {
      if (s.port == Source::kBack || waits_for[size_t(s.node)] == 0) continue;
      at = s.node;
      break;
    }
  }
  path.erase(path.begin(), std::find(path.begin(), path.end(), at));
  std::reverse(path.begin(), path.end());  // now in the direction of the data flow
  std::string text;
  for (size_t i = 0; i < path.size() && i < kNamesShown; ++i) text += StrCat("'", Shown(NameOf(nodes_[size_t(path[i])])), "' -> ");
  if (path.size() > kNamesShown) text += StrCat("(", path.size() - kNamesShown, " more) -> ");
  const StoredNode& first = nodes_[size_t(path[0])];
  return InvalidArgument(Title(first), " ", path.size(), " nodes form a cycle: ", text, "'", Shown(NameOf(first)),
                         "'; a loop leads through a NextIteration to a Merge");
}

// Returns NULL if no plugin defines the op.
const OpSchema* StoredGraph::OpOf(std::string_view name) {
  auto [at, is_new] = ops_.emplace(name, nullptr);
  if (is_new) at->second = host_.FindOp(name);
  return at->second;
}

bool SplitBodyInput(std::string_view text, std::string_view* name, std::string_view* argument, int32_t* port) {
  *argument = {};
  const size_t first = text.find(':');
  if (first == text.npos) return SplitInput(text, name, port);
  *name = text.substr(0, first);
  *argument = text.substr(first + 1);
  *port = kAllPorts;
  if (argument->find(':') != argument->npos && !SplitInput(*argument, argument, port)) return false;
  return !argument->empty() && argument->find(':') == argument->npos && *port != Source::kControl;
}

}  // namespace thalweg
