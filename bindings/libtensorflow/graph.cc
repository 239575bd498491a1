#include "graph.h"

#include <algorithm>

#include "ops.h"
#include "tensor.h"

using namespace thalweg::tf;
namespace proto = thalweg::proto;

TF_Graph::TF_Graph() { Check(tw_graph_create(nullptr, &graph)); }
TF_Graph::~TF_Graph() { tw_graph_destroy(graph); }

void TF_Graph::Release() {
  if (owners.fetch_sub(1) == 1) delete this;
}

size_t TF_Graph::Update() {
  const std::lock_guard lock(mu);
  const uint32_t count = tw_graph_count(graph);
  while (operations.size() < count) {
    const size_t i = operations.size();
    const tw_operation* op = tw_graph_operation(graph, static_cast<uint32_t>(i));
    TF_Operation& made = operations.emplace_back(TF_Operation{this, op, i, ""});
    by_handle[op] = &made;
  }
  for (size_t i = linked_; i < count; ++i) {
    TF_Operation& made = operations[i];
    for (uint32_t k = 0; k < tw_operation_input_count(made.op); ++k) {
      consumers[tw_operation_input(made.op, k)].push_back({&made, static_cast<int>(k)});
    }
    for (uint32_t k = 0; k < tw_operation_control_count(made.op); ++k) control_outputs[tw_operation_control(made.op, k)].push_back(&made);
  }
  linked_ = count;
  return count;
}

TF_Operation* TF_Graph::Find(const tw_operation* op) {
  if (!op) return nullptr;
  const std::lock_guard lock(mu);
  if (const auto at = by_handle.find(op); at != by_handle.end()) return at->second;
  Update();
  return by_handle.at(op);
}

TF_Operation* TF_Graph::FindName(const std::string& name) {
  const tw_operation* op = nullptr;
  if (!tw_graph_has(graph, name.c_str())) return nullptr;
  Check(tw_graph_find(graph, name.c_str(), &op));
  return Find(op);
}

TF_Output TF_Graph::Outside(tw_output value) {
  const tw_operation* op = nullptr;
  uint32_t index = 0;
  if (value == 0) return {nullptr, -1};
  Check(tw_graph_producer(graph, value, &op, &index));
  return {Find(op), static_cast<int>(index)};
}

proto::GraphDef TF_Graph::Export() {
  const std::lock_guard lock(mu);
  tw_buffer* bytes = nullptr;
  Check(tw_graph_export(graph, &bytes));
  const BufferRef owner(bytes);
  proto::GraphDef def;
  Parse(tw_buffer_data(bytes), tw_buffer_bytes(bytes), "GraphDef", &def);
  Update();
  for (proto::NodeDef& node : *def.mutable_node()) {
    const TF_Operation* op = FindName(node.name());
    if (op && !op->function.empty()) node = NodeOf(*op);
  }
  if (def.versions().producer() == 0) def.mutable_versions()->set_producer(kGraphVersion);
  return def;
}

const proto::FunctionDef* TF_Graph::FindFunction(const std::string& name) {
  const std::lock_guard lock(mu);
  const auto known = functions.find(name);
  if (known != functions.end()) return &known->second;
  if (tw_graph_function_count(graph) == functions.size()) return nullptr;
  const proto::GraphDef def = Export();
  for (const proto::FunctionDef& f : def.library().function()) functions.emplace(f.signature().name(), f);
  const auto now = functions.find(name);
  return now == functions.end() ? nullptr : &now->second;
}

namespace thalweg::tf {

tw_output Inside(const TF_Graph& graph, TF_Output output, std::string_view what) {
  if (!output.oper) Fail(TF_INVALID_ARGUMENT, what, " has no operation");
  if (output.oper->graph != &graph)
    Fail(TF_INVALID_ARGUMENT, what, " is of the operation '", tw_operation_name(output.oper->op), "', which is not in the graph");
  const tw_output value = output.index < 0 ? 0 : tw_operation_output(output.oper->op, static_cast<uint32_t>(output.index));
  if (value) return value;
  Fail(output.index < 0 ? TF_INVALID_ARGUMENT : TF_OUT_OF_RANGE, "Node '", tw_operation_name(output.oper->op), "' (type: '",
       tw_operation_type(output.oper->op), "', num of outputs: ", std::to_string(tw_operation_output_count(output.oper->op)),
       ") does not have output ", std::to_string(output.index));
}

proto::NodeDef NodeOf(const TF_Operation& operation) {
  tw_buffer* bytes = nullptr;
  Check(tw_operation_message(operation.op, &bytes));
  const BufferRef owner(bytes);
  proto::NodeDef node;
  Parse(tw_buffer_data(bytes), tw_buffer_bytes(bytes), "NodeDef", &node);
  if (operation.function.empty()) return node;
  node.set_op(operation.function);
  for (const char* attr : {"f", "Tin", "Tout", "config", "config_proto", "executor_type"}) node.mutable_attr()->erase(attr);
  return node;
}

proto::OpDef SignatureOf(const TF_Operation& operation) {
  const std::string op = operation.function.empty() ? tw_operation_type(operation.op) : operation.function;
  if (operation.function.empty()) {
    if (const proto::OpDef* def = FindOp(op); def && !def->name().ends_with("PartitionedCall")) return *def;
  }
  const std::string written = operation.function.empty() ? NodeOf(operation).op() : op;
  if (const proto::FunctionDef* f = operation.graph->FindFunction(written)) return f->signature();
  return NeedOp(op);
}

int64_t Length(const proto::OpDef::ArgDef& arg, const proto::NodeDef& node) {
  if (!arg.number_attr().empty()) {
    const auto n = node.attr().find(arg.number_attr());
    return n == node.attr().end() ? 0 : n->second.i();
  }
  if (!arg.type_list_attr().empty()) {
    const auto types = node.attr().find(arg.type_list_attr());
    return types == node.attr().end() ? 0 : types->second.list().type_size();
  }
  return 1;
}

std::pair<std::string, int> SplitInput(const std::string& input) {
  if (!input.empty() && input[0] == '^') return {input.substr(1), -1};
  const size_t colon = input.rfind(':');
  if (colon == std::string::npos || colon + 1 == input.size()) return {input, 0};
  int port = 0;
  for (size_t i = colon + 1; i < input.size(); ++i) {
    if (input[i] < '0' || input[i] > '9' || port > 1000000) return {input, 0};
    port = port * 10 + (input[i] - '0');
  }
  return {input.substr(0, colon), port};
}

}  // namespace thalweg::tf

TF_Graph* TF_NewGraph(void) {
  return Guard(nullptr, [] { return new TF_Graph; });
}
void TF_DeleteGraph(TF_Graph* graph) {
  if (graph) graph->Release();
}

TF_Operation* TF_GraphOperationByName(TF_Graph* graph, const char* name) {
  return Guard(nullptr, [&] { return graph->FindName(OrEmpty(name)); });
}

TF_Operation* TF_GraphNextOperation(TF_Graph* graph, size_t* pos) {
  return Guard(nullptr, [&]() -> TF_Operation* {
    const std::lock_guard lock(graph->mu);
    if (*pos >= graph->Update()) return nullptr;
    return &graph->operations[(*pos)++];
  });
}

void TF_GraphToGraphDef(TF_Graph* graph, TF_Buffer* output, TF_Status* status) {
  Guard(status, [&] { Fill(output, Serialise(graph->Export())); });
}

void TF_GraphVersions(TF_Graph* graph, TF_Buffer* output, TF_Status* status) {
  Guard(status, [&] { Fill(output, Serialise(graph->Export().versions())); });
}

void TF_GraphGetOpDef(TF_Graph* graph, const char* name, TF_Buffer* output, TF_Status* status) {
  Guard(status, [&] {
    if (const proto::FunctionDef* f = graph->FindFunction(OrEmpty(name))) {
      Fill(output, Serialise(f->signature()));
    } else {
      Fill(output, Serialise(NeedOp(OrEmpty(name))));
    }
  });
}

// ---- Shapes ----

namespace {

constexpr int64_t kUnknownRank = -2;

// The shape as the graph infers it, merged with what the client gave.
std::vector<int64_t> ShapeOf(TF_Graph* graph, tw_output value) {
  tw_shape inferred;
  Check(tw_graph_describe(graph->graph, value, nullptr, &inferred));
  const std::lock_guard lock(graph->mu);
  const auto given = graph->shapes.find(value);
  if (inferred.rank < 0) return given == graph->shapes.end() ? std::vector<int64_t>{kUnknownRank} : given->second;
  std::vector<int64_t> dims(inferred.dims, inferred.dims + inferred.rank);
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] < 0) dims[i] = given == graph->shapes.end() ? -1 : given->second[i];
  }
  return dims;
}

bool RankUnknown(const std::vector<int64_t>& dims) { return dims.size() == 1 && dims[0] == kUnknownRank; }

std::string ShapeText(const std::vector<int64_t>& dims) {
  std::string text = "[";
  for (size_t i = 0; i < dims.size(); ++i) text += (i ? "," : "") + (dims[i] < 0 ? std::string("?") : std::to_string(dims[i]));
  return text + "]";
}

}  // namespace

void TF_GraphSetTensorShape(TF_Graph* graph, TF_Output output, const int64_t* dims, const int num_dims, TF_Status* status) {
  Guard(status, [&] {
    const std::lock_guard lock(graph->mu);
    const tw_output value = Inside(*graph, output);
    if (num_dims < 0) return;
    std::vector<int64_t> now = ShapeOf(graph, value), wanted(dims, dims + num_dims);
    for (int64_t& d : wanted) d = std::max<int64_t>(d, -1);
    if (RankUnknown(now)) now.assign(wanted.size(), -1);
    if (now.size() != wanted.size()) {
      Fail(TF_INVALID_ARGUMENT, "Shapes must be equal rank, but are ", std::to_string(now.size()), " and ", std::to_string(wanted.size()));
    }
    for (size_t i = 0; i < now.size(); ++i) {
      if (now[i] >= 0 && wanted[i] >= 0 && now[i] != wanted[i]) {
        Fail(TF_INVALID_ARGUMENT, "Dimension ", std::to_string(i), " in both shapes must be equal, but are ", std::to_string(now[i]),
             " and ", std::to_string(wanted[i]), ". Shapes are ", ShapeText(now), " and ", ShapeText(wanted), ".");
      }
      if (now[i] < 0) now[i] = wanted[i];
    }
    graph->shapes[value] = std::move(now);
  });
}

int TF_GraphGetTensorNumDims(TF_Graph* graph, TF_Output output, TF_Status* status) {
  int rank = -1;
  Guard(status, [&] {
    const std::vector<int64_t> dims = ShapeOf(graph, Inside(*graph, output));
    if (!RankUnknown(dims)) rank = static_cast<int>(dims.size());
  });
  return rank;
}

void TF_GraphGetTensorShape(TF_Graph* graph, TF_Output output, int64_t* dims, int num_dims, TF_Status* status) {
  Guard(status, [&] {
    const std::vector<int64_t> shape = ShapeOf(graph, Inside(*graph, output));
    const int rank = RankUnknown(shape) ? -1 : static_cast<int>(shape.size());
    if (rank != num_dims) {
      Fail(TF_INVALID_ARGUMENT, "Expected rank is ", std::to_string(num_dims), " but actual rank is ", std::to_string(rank));
    }
    if (rank > 0) std::copy(shape.begin(), shape.end(), dims);
  });
}
