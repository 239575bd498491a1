#include <map>

#include "framework/graph/attr_proto.h"
#include "framework/graph/function.h"
#include "framework/graph/graph_def.h"
#include "framework/graph/graph_def_fields.h"
#include "framework/graph/node_links.h"
#include "framework/proto/wire.h"

namespace thalweg {
namespace {

using namespace graph_def;

constexpr uint64_t kMostBytes = (uint64_t{1} << 31) - 1;

// Returns serialised attributes by name.
StatusOr<std::map<std::string, std::string>> Attributes(const Node& node, bool as_written) {
  std::map<std::string, std::string> all = node.extra_attrs();
  if (all.erase(kOpAsWritten)) {
    if (as_written) return all;
    std::erase_if(all, [](const auto& attr) { return attr.first[0] != '_'; });  // the function's attributes
  }
  for (size_t i = 0; i < node.attrs().size(); ++i) {
    const std::string& name = node.op().attrs[i].name;
    if (all.count(name)) continue;  // its complete form
    auto message = SerializeAttr(node.attrs()[i]);
    if (!message.ok()) return Prefix(message.status(), StrCat(node.title(), ": attribute '", name, "':"));
    all.emplace(name, *std::move(message));
  }
  if (!node.colocate_with().empty() && !all.count("_class")) {
    ASSIGN_OR_RETURN(all["_class"], SerializeColocation(node.colocate_with(), {}));
  }
  return all;
}

}  // namespace

StatusOr<std::string> NodeMessage(const Node& node, const NodeLinks& links, const InputText& text_of, bool as_written) {
  std::string out, entry;
  const auto written = node.extra_attrs().find(kOpAsWritten);
  PutBytesField(kName, node.name(), &out);
  PutBytesField(kOp, as_written && written != node.extra_attrs().end() ? written->second : node.op().name, &out);
  for (int32_t i = 0; i < node.n_in(); ++i) {
    const Node* back = node.back(i);
    PutBytesField(kInput, text_of(back ? Edge{back, 0} : node.inputs()[size_t(i)]), &out);
  }
  for (const Node* c : node.controls()) PutBytesField(kInput, StrCat("^", c->name()), &out);
  if (!node.device().empty()) PutBytesField(kDevice, node.device(), &out);
  ASSIGN_OR_RETURN(auto attrs, Attributes(node, as_written));
  ASSIGN_OR_RETURN(auto ties, links.AttrsOf(node));
  attrs.merge(ties);
  for (const auto& [name, message] : attrs) {
    entry.clear();
    PutBytesField(kKey, name, &entry);
    PutBytesField(kValue, message, &entry);
    PutBytesField(kAttr, entry, &out);
  }
  return out + node.unknown_fields();
}

namespace {

std::string VersionsMessage(const GraphExtras& v) {
  std::string out;
  if (v.producer) PutVarintField(kProducer, uint64_t(int64_t(v.producer)), &out);
  if (v.min_consumer) PutVarintField(kMinConsumer, uint64_t(int64_t(v.min_consumer)), &out);
  std::string bad;
  for (int32_t b : v.bad_consumers) PutVarint(uint64_t(int64_t(b)), &bad);
  if (!bad.empty()) PutBytesField(kBadConsumers, bad, &out);
  return out;
}

}  // namespace

StatusOr<std::string> ExportGraphDef(const Graph& graph) {
  const GraphExtras extras = graph.extras();
  const NodeLinks links(graph);
  std::string out;
  for (int32_t i = 0, n = graph.size(); i < n; ++i) {
    ASSIGN_OR_RETURN(const std::string message, NodeMessage(*graph.node(i), links, [](const Edge& e) { return e.text(); }, true));
    PutBytesField(kNode, message, &out);
    if (out.size() + extras.library.size() + extras.unknown_fields.size() > kMostBytes) {
      return ResourceExhausted("the graph takes more than 2 GiB, which no GraphDef may have; keep large constants in a checkpoint");
    }
  }
  std::string library = extras.library;
  if (const auto functions = graph.functions()) {
    ASSIGN_OR_RETURN(const std::string added, functions->ExportAdded());
    library += added;
  }
  if (!library.empty()) PutBytesField(kLibrary, library, &out);
  PutBytesField(kVersions, VersionsMessage(extras), &out);
  return out + extras.unknown_fields;
}

}  // namespace thalweg
