#include <unordered_set>

#include "framework/proto/graph.pb.h"
#include "load.h"
#include "needed.h"
#include "parse.h"
#include "signatures.h"
#include "xla_module.h"

namespace thalweg::savedmodel {
namespace {

// Splits "a,b:1" at the commas.
std::vector<std::string> Split(const std::string& text) {
  std::vector<std::string> parts;
  for (size_t at = 0; !text.empty() && at <= text.size(); at += parts.back().size() + 1)
    parts.push_back(text.substr(at, text.find(',', at) - at));
  return parts;
}

std::vector<std::string> Placeholders(const proto::GraphDef& graph, const Needed& needed) {
  std::vector<std::string> names;
  for (const proto::NodeDef& n : graph.node()) {
    const bool open = n.op() == "Placeholder" || n.op() == "PlaceholderV2";
    if (open && needed.has(n.name())) names.push_back(n.name());
  }
  return names;
}

// Nodes that nobody reads, except those without a value.
std::vector<std::string> Ends(const proto::GraphDef& graph) {
  std::unordered_set<std::string_view> read;
  for (const proto::NodeDef& n : graph.node()) {
    for (const std::string& input : n.input()) read.insert(NodeOf(input));
  }
  std::vector<std::string> names;
  for (const proto::NodeDef& n : graph.node()) {
    const bool plain = n.op() == "Const" || n.op() == "NoOp" || n.op() == "Assert" || n.op() == "Placeholder";
    if (!plain && read.count(n.name()) == 0) names.push_back(n.name());
  }
  return names;
}

}  // namespace

void LoadFrozenGraph(const FileBytes& file, Sink* sink) {
  MessageMemory memory(file.size());
  auto& graph = *Parse<proto::GraphDef>(file, "the GraphDef", &memory);
  Needed needed(graph);
  std::vector<std::string> outputs = Split(sink->Option("outputs")), inputs = Split(sink->Option("inputs"));
  if (outputs.empty()) outputs = Ends(graph);
  if (outputs.empty())
    throw Error{TW_INVALID_ARGUMENT, "the GraphDef has no operation that could be an output; name them with the option outputs"};
  for (const std::string& name : outputs) needed.Add(name, "an output");
  if (inputs.empty()) inputs = Placeholders(graph, needed);
  needed.ReportMissingOps(sink);
  const std::string producer = std::to_string(graph.versions().producer());
  std::string bytes;
  proto::GraphDef* taken = needed.Take(&graph);
  ImportXlaModules(taken, sink);
  if (!taken->SerializeToString(&bytes)) throw Error{TW_RESOURCE_EXHAUSTED, "the graph is too large for a message"};
  sink->GraphDef(bytes);
  sink->Property("format", "GraphDef");
  sink->Property("producer", "GraphDef version " + producer);
  SignatureRecords records(sink);
  for (const std::string& name : inputs) records.AddInput(name, name);
  for (const std::string& name : outputs) records.AddOutput(name, name);
  records.Finish("serving_default", "inputs and outputs of a frozen graph", true);
}

}  // namespace thalweg::savedmodel
