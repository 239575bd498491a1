#include "thalweg/save_model.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "c_api/handles.h"
#include "c_api/shim.h"
#include "framework/files/whole_file.h"
#include "framework/graph/graph_def.h"
#include "framework/graph/prune_def.h"
#include "framework/proto/graph.pb.h"
#include "framework/proto/tensor_proto.h"
#include "framework/proto/wire.h"
#include "framework/runtime/runtime_of.h"
#include "thalweg/cpp/signature.hpp"
#include "thalweg/op.h"
#include "thalweg/scope.h"
#include "thalweg/variable.h"

using thalweg::FromC;
using thalweg::InvalidArgument;
using thalweg::Status;
using thalweg::StatusOr;
using thalweg::StrCat;
namespace proto = thalweg::proto;

namespace {

constexpr char kStart[] = "__saved_model_init_op";

// A value that a signature names.
struct Port {
  std::string name;  // in the signature
  std::string node;
  uint32_t index = 0;
  uint32_t dtype = 0;
  tw_shape shape = {nullptr, -1, 0};
};

struct SavedSignature {
  std::string name;
  std::vector<Port> inputs, outputs;
};

StatusOr<std::vector<Port>> Ports(const tw_graph* graph, const std::string& where, const char* const* names, const tw_output* values,
                                  uint32_t n) {
  if (n > 0 && (!names || !values)) return InvalidArgument(where, ": a list is NULL");
  std::vector<Port> ports(n);
  std::set<std::string> taken;
  for (uint32_t i = 0; i < n; ++i) {
    if (!names[i] || !*names[i]) return InvalidArgument(where, ": value ", i, " has no name");
    Port& p = ports[i];
    p.name = names[i];
    if (!taken.insert(p.name).second) return InvalidArgument(where, ": '", p.name, "' is there twice");
    const tw_operation* operation = nullptr;
    RETURN_IF_ERROR(FromC(tw_graph_producer(graph, values[i], &operation, &p.index)));
    RETURN_IF_ERROR(FromC(tw_graph_describe(graph, values[i], &p.dtype, &p.shape)));
    p.node = tw_operation_name(operation);
  }
  return ports;
}

StatusOr<std::vector<SavedSignature>> Signatures(const tw_graph* graph, const tw_saved_signature* given, uint32_t n) {
  std::vector<SavedSignature> all;
  std::set<std::string> taken;
  if (n < 1) return InvalidArgument("tw_model_save: there are no signatures");
  for (uint32_t i = 0; i < n; ++i) {
    const tw_saved_signature& s = given[i];
    RETURN_IF_ERROR(thalweg::CheckRecord("tw_saved_signature", s.size, s.flags, sizeof(s)));
    const std::string name = s.name ? s.name : "serving_default", where = StrCat("tw_model_save: signature '", name, "'");
    if (name.empty() || name == kStart) return InvalidArgument(where, " has a name that loaders reserve");
    if (!taken.insert(name).second) return InvalidArgument(where, " is there twice");
    if (s.n_outputs < 1) return InvalidArgument(where, " has no outputs");
    ASSIGN_OR_RETURN(auto inputs, Ports(graph, where, s.input_names, s.inputs, s.n_inputs));
    ASSIGN_OR_RETURN(auto outputs, Ports(graph, where, s.output_names, s.outputs, s.n_outputs));
    all.push_back({name, std::move(inputs), std::move(outputs)});
  }
  return all;
}

// Every placeholder that an output of the signature needs must be an input.
Status CheckFed(const SavedSignature& s, const proto::GraphDef& graph) {
  std::unordered_map<std::string, const proto::NodeDef*> nodes;
  for (const proto::NodeDef& node : graph.node()) nodes[node.name()] = &node;
  std::set<std::string> seen;
  for (const Port& input : s.inputs) seen.insert(input.node);
  std::vector<std::pair<std::string, std::string>> todo;  // a node, and the output that needs it
  for (const Port& output : s.outputs) todo.emplace_back(output.node, output.name);
  while (!todo.empty()) {
    const auto [name, output] = std::move(todo.back());
    todo.pop_back();
    if (!seen.insert(name).second) continue;
    const proto::NodeDef& node = *nodes.at(name);
    if (node.op() == "Placeholder") {
      return InvalidArgument("tw_model_save: signature '", s.name, "': output '", output, "' needs the placeholder '", name,
                             "', which is no input; add it to the inputs");
    }
    for (const std::string& input : node.input()) todo.emplace_back(thalweg::NodeOfInput(input), output);
  }
  return Status();
}

// Refuses state that the file cannot hold.
Status CheckState(const tw_graph* graph, const proto::GraphDef& pruned) {
  for (const proto::NodeDef& node : pruned.node()) {
    const bool reference = node.op() == "VariableV2" || node.op() == "Variable";
    bool other = false;
    if (node.op() != "VarHandleOp" && node.op() != "Placeholder" && node.input_size() == 0) {
      const tw_operation* operation = nullptr;
      RETURN_IF_ERROR(FromC(tw_graph_find(graph, node.name().c_str(), &operation)));
      for (uint32_t i = 0; i < tw_operation_output_count(operation); ++i) {
        uint32_t dtype = 0;
        RETURN_IF_ERROR(FromC(tw_graph_describe(graph, tw_operation_output(operation, i), &dtype, nullptr)));
        other = other || dtype == TW_RESOURCE;
      }
    }
    if (reference || other) {
      return thalweg::Unimplemented("tw_model_save: '", node.name(), "' (", node.op(), ") is ",
                                    reference ? "a variable by reference" : "state of another kind than variables",
                                    ", which a model file does not hold; leave it out of the signatures");
    }
  }
  return Status();
}

// The values of variables, by the names of their nodes.
StatusOr<std::map<std::string, thalweg::Tensor>> Values(tw_graph* graph, tw_session* session, const proto::GraphDef& pruned) {
  std::map<std::string, std::string> reads;  // by the name of the handle
  for (const proto::NodeDef& node : pruned.node()) {
    if (node.op() == "VarHandleOp") reads.emplace(node.name(), "");
  }
  for (const proto::NodeDef& node : pruned.node()) {
    if (node.op() != "ReadVariableOp") continue;
    if (const auto found = reads.find(thalweg::NodeOfInput(node.input(0))); found != reads.end()) found->second = node.name();
  }
  std::vector<std::string> names;
  std::vector<tw_output> fetches;
  tw_scope* scope = tw_scope_create(graph, "save_model");
  for (const auto& [name, read] : reads) {
    tw_output value = 0;
    tw_scope_fail(scope, tw_graph_find_output(graph, (read.empty() ? name : read).c_str(), &value));
    names.push_back(name);
    fetches.push_back(read.empty() ? tw_variable_read(scope, value) : value);
  }
  RETURN_IF_ERROR(FromC(tw_scope_finish(scope)));
  std::vector<tw_tensor*> got(fetches.size());
  const tw_signature what = tw::signature_of(std::vector<tw_output>(), fetches);
  RETURN_IF_ERROR(FromC(tw_session_run(session, &what, nullptr, nullptr, got.data())));
  std::map<std::string, thalweg::Tensor> values;
  for (size_t i = 0; i < got.size(); ++i) values.emplace(names[i], thalweg::Tensor::Adopt(got[i]));
  return values;
}

void SetType(const char* name, uint32_t dtype, proto::NodeDef* node) { (*node->mutable_attr())[name].set_type(proto::DataType(dtype)); }

// Adds, for each variable, a constant with its value and an assignment, and an operation that runs all assignments, whose name it returns.
StatusOr<std::string> AddStart(const std::map<std::string, thalweg::Tensor>& values, proto::GraphDef* graph) {
  std::set<std::string> taken;
  for (const proto::NodeDef& node : graph->node()) taken.insert(node.name());
  const auto add = [&](std::string name, const char* op) {
    while (!taken.insert(name).second) name += "_";
    proto::NodeDef* node = graph->add_node();
    node->set_name(name);
    node->set_op(op);
    return node;
  };
  std::vector<std::string> assigns;
  for (const auto& [name, value] : values) {
    proto::NodeDef* constant = add("saved/" + name, "Const");
    SetType("dtype", uint32_t(value.dtype()), constant);
    RETURN_IF_ERROR(thalweg::TensorToProto(value, (*constant->mutable_attr())["value"].mutable_tensor()));
    const std::string from = constant->name();
    proto::NodeDef* assign = add("saved/" + name + "/Assign", "AssignVariableOp");
    SetType("dtype", uint32_t(value.dtype()), assign);
    assign->add_input(name);
    assign->add_input(from);
    assigns.push_back(assign->name());
  }
  proto::NodeDef* start = add("saved/init", "NoOp");
  for (const std::string& assign : assigns) start->add_input("^" + assign);
  return start->name();
}

// ---- The message SavedModel around the graph. It is written field by field, because its generated classes, which nothing else here needs,
// would take 300 kB of the library. Numbers of fields: framework/proto/saved_model.proto ----

std::string Shape(const tw_shape& shape) {
  std::string out;
  for (int32_t i = 0; i < shape.rank; ++i) {
    std::string dim;
    thalweg::PutVarintField(1, uint64_t(std::max<int64_t>(shape.dims[i], -1)), &dim);
    thalweg::PutBytesField(2, dim, &out);
  }
  if (shape.rank < 0) thalweg::PutVarintField(3, 1, &out);  // unknown_rank
  return out;
}

void PutEntry(uint32_t number, std::string_view key, std::string_view value, std::string* to) {
  std::string entry;
  thalweg::PutBytesField(1, key, &entry);
  thalweg::PutBytesField(2, value, &entry);
  thalweg::PutBytesField(number, entry, to);
}

void PutPorts(uint32_t number, const std::vector<Port>& ports, std::string* to) {
  for (const Port& p : ports) {
    std::string info;
    thalweg::PutBytesField(1, StrCat(p.node, ":", p.index), &info);
    thalweg::PutVarintField(2, p.dtype, &info);
    thalweg::PutBytesField(3, Shape(p.shape), &info);
    PutEntry(number, p.name, info, to);
  }
}

// The tag, the graph and the signatures, of which one stands for the initialisation.
std::string MetaGraph(std::string_view graph, const std::vector<SavedSignature>& signatures, const std::string& start) {
  std::string info, meta;
  thalweg::PutBytesField(4, "serve", &info);
  thalweg::PutBytesField(1, info, &meta);
  thalweg::PutBytesField(2, graph, &meta);
  for (const SavedSignature& s : signatures) {
    std::string signature;
    PutPorts(1, s.inputs, &signature);
    PutPorts(2, s.outputs, &signature);
    thalweg::PutBytesField(3, "tensorflow/serving/predict", &signature);
    PutEntry(5, s.name, signature, &meta);
  }
  std::string operation, signature;
  thalweg::PutBytesField(1, start, &operation);
  PutEntry(2, kStart, operation, &signature);
  PutEntry(5, kStart, signature, &meta);
  return meta;
}

StatusOr<std::string> Model(tw_graph* graph, tw_session* session, const std::vector<SavedSignature>& signatures) {
  proto::GraphDef def;
  ASSIGN_OR_RETURN(const std::string bytes, thalweg::ExportGraphDef(*graph->graph));
  if (!def.ParseFromString(bytes)) return thalweg::Internal("tw_model_save: an exported graph cannot be read");
  std::vector<std::string> roots;
  for (const SavedSignature& s : signatures) {
    for (const Port& p : s.inputs) roots.push_back(p.node);
    for (const Port& p : s.outputs) roots.push_back(p.node);
  }
  RETURN_IF_ERROR(thalweg::PruneGraphDef(roots, &def));
  for (proto::NodeDef& node : *def.mutable_node()) node.clear_device();
  for (const SavedSignature& s : signatures) RETURN_IF_ERROR(CheckFed(s, def));
  RETURN_IF_ERROR(CheckState(graph, def));
  ASSIGN_OR_RETURN(const auto values, Values(graph, session, def));
  ASSIGN_OR_RETURN(const std::string start, AddStart(values, &def));
  constexpr size_t kMost = (size_t{1} << 31) - 1 - (size_t{1} << 20);  // leaves room for the signatures
  if (const size_t size = def.ByteSizeLong(); size > kMost) {
    return thalweg::ResourceExhausted("tw_model_save: the model takes ", size, " bytes, and one file holds up to ", kMost,
                                      "; save the graph by tw_graph_export and the variables by a saver");
  }
  std::string model;
  thalweg::PutVarintField(1, 1, &model);  // saved_model_schema_version
  thalweg::PutBytesField(2, MetaGraph(def.SerializeAsString(), signatures, start), &model);
  return model;
}

}  // namespace

tw_status* tw_model_save(tw_graph* graph, tw_session* session, const tw_saved_signature* signatures, uint32_t n, const char* path) {
  NEED(graph);
  NEED(session);
  NEED_ARRAY(signatures, n);
  NEED(path);
  return thalweg::Enter([&]() -> Status {
    ASSIGN_OR_RETURN(const std::vector<SavedSignature> wanted, Signatures(graph, signatures, n));
    ASSIGN_OR_RETURN(const std::string model, Model(graph, session, wanted));
    return thalweg::ReplaceFile(path, thalweg::TemporaryName(path, "model"), model, RuntimeOf(*graph->graph).files());
  });
}
