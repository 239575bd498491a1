// thalweg inspect: what a graph file holds: its inputs, variables, outputs and operations.
#include <cstdio>
#include <map>

#include "command.h"
#include "handles.h"
#include "json.h"

namespace thalweg::cli {
namespace {

struct Variable {
  std::string name, dtype, shape;
  uint64_t elements = 0, bytes = 0;  // 0 where the shape is not known
};

std::vector<Variable> ListVariables(const tw::Graph& graph) {
  const Variables all(graph);
  std::vector<Variable> list;
  for (uint32_t i = 0; i < tw_variables_count(all.c()); ++i) {
    uint32_t dtype = 0;
    tw_shape shape;
    tw::raise(tw_variables_describe(all.c(), i, &dtype, &shape));
    Variable v{tw_variables_name(all.c(), i), DTypeText(dtype), ShapeText(shape)};
    v.elements = shape.rank >= 0 ? 1 : 0;
    for (int32_t axis = 0; axis < shape.rank; ++axis) v.elements = shape.dims[axis] < 0 ? 0 : v.elements * uint64_t(shape.dims[axis]);
    v.bytes = v.elements * tw_dtype_bytes(dtype);
    list.push_back(std::move(v));
  }
  return list;
}

struct Facts {
  std::vector<const tw_operation*> inputs, outputs;
  std::map<std::string, uint32_t> types;
  std::vector<Variable> variables;
};

Facts Collect(const tw::Graph& graph) {
  Facts facts;
  std::vector<uint8_t> read(tw_graph_count(graph.c()));
  std::map<const tw_operation*, uint32_t> index;
  for (uint32_t i = 0; i < read.size(); ++i) {
    const tw_operation* op = tw_graph_operation(graph.c(), i);
    index[op] = i;
    ++facts.types[tw_operation_type(op)];
    if (std::string(tw_operation_type(op)) == "Placeholder") facts.inputs.push_back(op);
  }
  for (const auto& [op, unused] : index) {
    for (uint32_t i = 0; i < tw_operation_input_count(op); ++i) {
      const tw_operation* producer = nullptr;
      tw::raise(tw_graph_producer(graph.c(), tw_operation_input(op, i), &producer, nullptr));
      read[index[producer]] = 1;
    }
    for (uint32_t i = 0; i < tw_operation_control_count(op); ++i) read[index[tw_operation_control(op, i)]] = 1;
  }
  for (uint32_t i = 0; i < read.size(); ++i) {
    if (!read[i]) facts.outputs.push_back(tw_graph_operation(graph.c(), i));
  }
  facts.variables = ListVariables(graph);
  return facts;
}

// The types and shapes of an operation's outputs.
std::string Outputs(const tw::Graph& graph, const tw_operation* op) {
  std::string text;
  for (uint32_t i = 0; i < tw_operation_output_count(op); ++i) text += (i ? "; " : "") + Describe(graph, tw_operation_output(op, i));
  return text;
}

std::string ValueName(const tw::Graph& graph, tw_output value) {
  const tw_operation* producer = nullptr;
  uint32_t port = 0;
  tw::raise(tw_graph_producer(graph.c(), value, &producer, &port));
  return tw_operation_name(producer) + (port ? ":" + std::to_string(port) : "");
}

std::string Inputs(const tw::Graph& graph, const tw_operation* op) {
  std::string text;
  for (uint32_t i = 0; i < tw_operation_input_count(op); ++i) text += (i ? ", " : "") + ValueName(graph, tw_operation_input(op, i));
  for (uint32_t i = 0; i < tw_operation_control_count(op); ++i) {
    text += (text.empty() ? "^" : ", ^") + std::string(tw_operation_name(tw_operation_control(op, i)));
  }
  return text;
}

std::string AttrText(const tw_operation* op, const char* attr, size_t most) {
  tw_buffer* buffer = nullptr;
  tw::raise(tw_operation_attr_text(op, attr, &buffer));
  std::string text = tw::take_text(buffer);
  if (most > 0 && text.size() > most) text = text.substr(0, most - 3) + "...";
  return text;
}

void PrintOperation(const tw::Graph& graph, const tw_operation* op) {
  std::printf("%s  %s\n", Coloured(kBold, tw_operation_name(op)).c_str(), tw_operation_type(op));
  for (uint32_t i = 0; i < tw_operation_input_count(op); ++i) {
    const tw_output value = tw_operation_input(op, i);
    std::printf("  input %u   %s  %s\n", i, ValueName(graph, value).c_str(), Describe(graph, value).c_str());
  }
  for (uint32_t i = 0; i < tw_operation_control_count(op); ++i) {
    std::printf("  control   %s\n", tw_operation_name(tw_operation_control(op, i)));
  }
  for (uint32_t i = 0; i < tw_operation_output_count(op); ++i) {
    std::printf("  output %u  %s\n", i, Describe(graph, tw_operation_output(op, i)).c_str());
  }
  for (uint32_t i = 0; i < tw_operation_attr_count(op); ++i) {
    const char* attr = tw_operation_attr_name(op, i);
    std::printf("  %-9s %s\n", attr, AttrText(op, attr, 0).c_str());
  }
  if (*tw_operation_device(op)) std::printf("  device    %s\n", tw_operation_device(op));
}

void PrintSummary(const tw::Graph& graph, const std::string& path) {
  const Facts facts = Collect(graph);
  std::printf("%s: %u operations, %zu variables\n", path.c_str(), tw_graph_count(graph.c()), facts.variables.size());
  const auto section = [&](const char* title, const std::vector<std::vector<std::string>>& rows) {
    if (!rows.empty()) std::printf("\n%s\n%s", Coloured(kBold, title).c_str(), Table(rows).c_str());
  };
  std::vector<std::vector<std::string>> inputs, variables, outputs, types;
  for (const tw_operation* op : facts.inputs) inputs.push_back({"  " + std::string(tw_operation_name(op)), Outputs(graph, op)});
  uint64_t bytes = 0, elements = 0;
  for (const Variable& v : facts.variables) {
    variables.push_back({"  " + v.name, v.dtype + " " + v.shape, v.bytes ? BytesText(v.bytes) : "?"});
    bytes += v.bytes;
    elements += v.elements;
  }
  if (!variables.empty()) variables.push_back({"  all", std::to_string(elements) + " elements", BytesText(bytes)});
  for (const tw_operation* op : facts.outputs) {
    outputs.push_back({"  " + std::string(tw_operation_name(op)), tw_operation_type(op), Outputs(graph, op)});
  }
  for (const auto& [type, count] : facts.types) types.push_back({"  " + type, std::to_string(count)});
  section("inputs", inputs);
  section("variables", variables);
  section("outputs (nothing reads them)", outputs);
  section("operations by type", types);
}

void AddOperation(const tw::Graph& graph, const tw_operation* op, Json* json) {
  json->Object().Text("name", tw_operation_name(op)).Text("op", tw_operation_type(op)).Text("device", tw_operation_device(op));
  json->Array("inputs");
  for (uint32_t i = 0; i < tw_operation_input_count(op); ++i) json->Text("", ValueName(graph, tw_operation_input(op, i)));
  json->End().Array("controls");
  for (uint32_t i = 0; i < tw_operation_control_count(op); ++i) json->Text("", tw_operation_name(tw_operation_control(op, i)));
  json->End().Array("outputs");
  for (uint32_t i = 0; i < tw_operation_output_count(op); ++i) json->Text("", Describe(graph, tw_operation_output(op, i)));
  json->End().Object("attrs");
  for (uint32_t i = 0; i < tw_operation_attr_count(op); ++i) {
    const char* attr = tw_operation_attr_name(op, i);
    json->Text(attr, AttrText(op, attr, 200));
  }
  json->End().End();
}

void PrintJson(const tw::Graph& graph, const std::vector<const tw_operation*>& operations) {
  Json json;
  json.Object().Array("operations");
  for (const tw_operation* op : operations) AddOperation(graph, op, &json);
  json.End().Array("variables");
  for (const Variable& v : ListVariables(graph)) {
    json.Object().Text("name", v.name).Text("dtype", v.dtype).Text("shape", v.shape).Number("bytes", int64_t(v.bytes)).End();
  }
  std::fputs(json.End().End().text().c_str(), stdout);
}

int Run(const Args& args) {
  const tw::Runtime runtime = MakeRuntime(args);
  const std::string path = args.positional()[0], bytes = ReadFile(path);
  if (args.has("--verify")) {
    tw::raise(tw_graph_verify(runtime.c(), bytes.data(), bytes.size()));
    std::printf("%s: good\n", path.c_str());
    return kGood;
  }
  tw::Graph graph(runtime);
  graph.import_graph_def(bytes);
  std::vector<const tw_operation*> chosen;
  for (const std::string& name : args.all("--node")) chosen.push_back(graph.find(name));
  if (chosen.empty() && (args.has("--all") || args.has("--json"))) {
    for (uint32_t i = 0; i < tw_graph_count(graph.c()); ++i) chosen.push_back(tw_graph_operation(graph.c(), i));
  }
  if (args.has("--json")) {
    PrintJson(graph, chosen);
  } else if (args.has("--node")) {
    for (const tw_operation* op : chosen) PrintOperation(graph, op);
  } else if (args.has("--all")) {
    std::vector<std::vector<std::string>> rows;
    for (const tw_operation* op : chosen) {
      rows.push_back({tw_operation_name(op), tw_operation_type(op), Inputs(graph, op), Outputs(graph, op)});
    }
    std::fputs(Table(rows).c_str(), stdout);
  } else {
    PrintSummary(graph, path);
  }
  return kGood;
}

}  // namespace

const Command& InspectCommand() {
  static const Command command = {
      "inspect",
      "GRAPH",
      "Shows what a graph file (GraphDef) holds: inputs, variables, outputs, operations.",
      "",
      {{"--all", nullptr, "list every operation with its inputs and outputs"},
       {"--node", "NAME", "show this operation in full; may be repeated"},
       {"--verify", nullptr, "only check it, as strictly as a run would, and that every operation has a kernel here"},
       kJsonOption,
       kPluginOption,
       kRuntimeOption},
      1,
      1,
      Run};
  return command;
}

}  // namespace thalweg::cli
