// thalweg inspect: shows the inputs, variables, outputs and operations of a graph file.
#include <cstdio>
#include <map>

#include "boxes.h"
#include "command.h"
#include "counted.h"
#include "dot.h"
#include "graph_svg.h"
#include "handles.h"
#include "json.h"
#include "model.h"
#include "model_file.h"
#include "operation_text.h"
#include "plan_view.h"
#include "scopes.h"
#include "utf8.h"

namespace thalweg::cli {
namespace {

struct Variable {
  std::string name, dtype, shape;
  uint64_t elements = 0, bytes = 0;  // 0 if the shape is not known
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

// Adds the rows of the tree down to `depth`, at most `most` of them.
void AddRows(const tw::Graph& graph, const ScopeNode& scope, size_t depth, size_t indent, size_t most,
             std::vector<std::vector<std::string>>* rows) {
  for (const ScopeNode& node : scope.children) {
    if (rows->size() >= most) return;
    const std::string name = std::string(2 + 2 * indent, ' ') + OneLine(node.name);
    if (node.op) {
      rows->push_back({name, tw_operation_type(node.op), OutputsText(graph, node.op), InputsText(graph, node.op)});
      continue;
    }
    rows->push_back({Coloured(kBold, name + "/"), std::to_string(node.operations) + (node.operations == 1 ? " operation" : " operations")});
    if (depth > 1) AddRows(graph, node, depth - 1, indent + 1, most, rows);
  }
}

// depth: 0 chooses a depth that fills about one screen.
void PrintTree(const tw::Graph& graph, size_t depth) {
  constexpr size_t kScreen = 60, kMostRows = 100;
  const ScopeNode root = ScopesOf(graph);
  const size_t chosen = depth ? depth : ChooseDepth(root, kScreen), most = depth ? SIZE_MAX : kMostRows;
  std::vector<std::vector<std::string>> rows;
  AddRows(graph, root, chosen, 0, most, &rows);
  std::printf("\n%s\n%s", Coloured(kBold, "operations by scope, with what they make and read").c_str(), Table(rows).c_str());
  const size_t all = CountVisible(root, chosen);
  if (all > rows.size()) std::printf("  ... and %zu more; --depth %zu or --all lists them\n", all - rows.size(), chosen);
}

void PrintSummary(const tw::Graph& graph, const std::string& path) {
  const Facts facts = Collect(graph);
  std::printf("%s: %s, %s\n", path.c_str(), Counted(tw_graph_count(graph.c()), "operation").c_str(),
              Counted(facts.variables.size(), "variable").c_str());
  const auto section = [&](const char* title, const std::vector<std::vector<std::string>>& rows) {
    if (!rows.empty()) std::printf("\n%s\n%s", Coloured(kBold, title).c_str(), Table(rows).c_str());
  };
  std::vector<std::vector<std::string>> inputs, variables, outputs, types;
  for (const tw_operation* op : facts.inputs) inputs.push_back({"  " + OneLine(tw_operation_name(op)), OutputsText(graph, op)});
  uint64_t bytes = 0, elements = 0;
  for (const Variable& v : facts.variables) {
    variables.push_back({"  " + v.name, v.dtype + " " + v.shape, v.bytes ? BytesText(v.bytes) : "?"});
    bytes += v.bytes;
    elements += v.elements;
  }
  if (!variables.empty()) variables.push_back({"  all", std::to_string(elements) + " elements", BytesText(bytes)});
  for (const tw_operation* op : facts.outputs) {
    outputs.push_back({"  " + OneLine(tw_operation_name(op)), tw_operation_type(op), OutputsText(graph, op)});
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

void PrintAll(const tw::Graph& graph, const std::vector<const tw_operation*>& operations) {
  std::vector<std::vector<std::string>> rows;
  for (const tw_operation* op : operations) {
    rows.push_back({OneLine(tw_operation_name(op)), tw_operation_type(op), OutputsText(graph, op), InputsText(graph, op)});
  }
  std::fputs(Table(rows).c_str(), stdout);
}

void Check(const tw::Runtime& runtime, const std::string& path) {
  const std::string bytes = ReadFile(path);
  try {
    tw::raise(tw_graph_verify(runtime.c(), bytes.data(), bytes.size()));
  } catch (const tw::StatusError& e) {
    throw tw::StatusError(e.code(), "'" + path + "': " + e.what(), e.operation(), e.place());
  }
}

void Verify(const tw::Runtime& runtime, const std::string& path) {
  Check(runtime, path);
  std::printf("%s: good\n", path.c_str());
}

std::string Picture(const tw::Graph& graph, size_t depth, const std::string& path, bool svg) {
  constexpr size_t kReadable = 300;
  Boxes boxes = MakeBoxes(graph, depth, kReadable);
  const std::string title = path.substr(path.rfind('/') + 1);
  if (!svg) return MakeDot(boxes, title);
  GroupConstants(&boxes);
  if (boxes.boxes.size() <= kMostDrawn) return MakeGraphSvg(boxes, title);
  throw std::runtime_error("'" + path + "' has " + std::to_string(boxes.boxes.size()) + " boxes at depth " + std::to_string(boxes.depth) +
                           ", a picture has room for " + std::to_string(kMostDrawn) + "; " +
                           (boxes.depth > 1 ? "give a smaller --depth" : "use --dot, --json or --all"));
}

// Returns the selected view; throws if several are selected.
std::string View(const Args& args) {
  std::string view;
  for (const char* option : {"--verify", "--dot", "--svg", "--all", "--node", "--plan", "--placement"}) {
    if (!args.has(option)) continue;
    if (!view.empty()) throw UsageError{view + " and " + option + " exclude each other"};
    view = option;
  }
  if (view == "--placement") view = "--plan";  // --placement shows a part of --plan
  const bool picture = view == "--dot" || view == "--svg";
  if (args.has("--json") && (picture || view == "--verify")) throw UsageError{view + " and --json exclude each other"};
  if (args.has("-o") && !picture) throw UsageError{"-o goes with --svg or --dot"};
  if (args.has("--depth") && !picture && (!view.empty() || args.has("--json"))) {
    throw UsageError{"--depth goes with the list of scopes, --svg or --dot"};
  }
  for (const char* option : {"--fetch", "--target", "--feed-shape", "--threads", "--device", "--session-option"}) {
    if (args.has(option) && view != "--plan") throw UsageError{std::string(option) + " goes with --plan or --placement"};
  }
  return view;
}

int Run(const Args& args) {
  const std::string view = View(args), path = args.positional()[0];
  const auto depth = size_t(args.integer("--depth", 0, 1));
  const tw::Runtime runtime = MakeRuntime(args);
  if (view == "--verify") {
    Verify(runtime, path);
    return kGood;
  }
  if (view.empty() && !args.has("--depth")) {
    if (const auto model = OpenModelFile(args, runtime, path)) {
      PrintModel(args, *model, path);
      return kGood;
    }
  }
  const tw::Graph graph = LoadGraph(runtime, path);
  if (tw_graph_count(graph.c()) == 0) Check(runtime, path);  // every op is unknown: names them
  std::vector<const tw_operation*> chosen;
  for (const std::string& name : args.all("--node")) chosen.push_back(graph.find(name));
  for (uint32_t i = 0; view != "--node" && i < tw_graph_count(graph.c()); ++i) chosen.push_back(tw_graph_operation(graph.c(), i));
  if (view == "--svg" || view == "--dot") {
    WriteOutput(args.get("-o"), Picture(graph, depth, path, view == "--svg"));
  } else if (view == "--plan") {
    PrintPlan(args, graph);
  } else if (args.has("--json")) {
    PrintJson(graph, chosen);
  } else if (view == "--node") {
    for (const tw_operation* op : chosen) PrintOperation(graph, op);
  } else if (view == "--all") {
    PrintAll(graph, chosen);
  } else {
    PrintSummary(graph, path);
    PrintTree(graph, depth);
  }
  return kGood;
}

std::vector<Option> Options() {
  std::vector<Option> options = {
      {"--depth", "N", "open scopes down to this depth; without it, as deep as fits on a screen, or in a picture"},
      {"--all", nullptr, "list every operation with what it makes and reads"},
      {"--node", "NAME", "show this operation in full; may be repeated"},
      {"--svg", nullptr, "a picture, as SVG"},
      {"--dot", nullptr, "the graph in the language of Graphviz"},
      {"-o", "FILE", "write the picture to this file instead of standard output"},
      {"--verify", nullptr, "only check it, as strictly as a run would, and that every operation has a kernel here"}};
  for (const Option& o : ModelFileOptions()) options.push_back(o);
  for (const Option& o : PlanOptions()) options.push_back(o);
  for (const Option& o : {kJsonOption, kPluginOption, kRuntimeOption}) options.push_back(o);
  return options;
}

}  // namespace

const Command& InspectCommand() {
  static const Command command = {"inspect",
                                  "FILE",
                                  "Shows the signatures of a model of any known format, or what a graph file (GraphDef) holds: inputs,\n"
                                  "variables, outputs, operations by scope.",
                                  "Examples:\n"
                                  "  thalweg inspect model.onnx\n"
                                  "  thalweg inspect graph.pb --svg -o graph.svg\n"
                                  "  thalweg inspect graph.pb --plan --fetch loss --feed-shape image=32,64\n",
                                  Options(),
                                  1,
                                  1,
                                  Run};
  return command;
}

}  // namespace thalweg::cli
