#include "thalweg/graph.h"

#include <algorithm>

#include "c_api/handles.h"
#include "c_api/shim.h"
#include "framework/base/dtype.h"
#include "framework/base/meant.h"
#include "framework/base/shown.h"
#include "framework/graph/flow.h"
#include "framework/graph/graph_def.h"
#include "framework/graph/left_out.h"
#include "framework/runtime/choose_kernel.h"
#include "framework/runtime/devices/device.h"
#include "framework/runtime/runtime_of.h"

using thalweg::Edge;
using thalweg::Enter;
using thalweg::Node;
using thalweg::Status;

namespace {

// Lists the values that may be fed, for a message when no similar name exists.
std::string Placeholders(const thalweg::Graph& graph) {
  constexpr size_t kShown = 5;
  std::string text;
  size_t n = 0;
  for (int32_t i = 0; i < graph.size(); ++i) {
    if (graph.node(i)->op().role != "placeholder") continue;
    if (n++ < kShown)
      text += thalweg::StrCat(text.empty() ? "; its placeholders are '" : ", '", thalweg::Shown(graph.node(i)->name()), "'");
  }
  return n > kShown ? thalweg::StrCat(text, " and ", n - kShown, " more") : text;
}

// Returns the closest name; does not search large graphs.
std::string Suggestion(const thalweg::Graph& graph, std::string_view name) {
  constexpr int32_t kMostNodes = 5000;
  thalweg::Meant meant(name);
  for (int32_t i = 0; i < graph.size() && graph.size() <= kMostNodes; ++i) meant.Consider(graph.node(i)->name());
  return meant.text().empty() ? Placeholders(graph) : meant.text();
}

Status NoNode(const thalweg::Graph& graph, std::string_view name) {
  RETURN_IF_ERROR(thalweg::CheckNotLeftOut(graph, name));
  return thalweg::NotFound("the graph has no operation '", thalweg::Shown(name), "'", Suggestion(graph, name));
}

// Returns OK if some device can run the node, or the framework executes it itself.
Status CheckKernel(thalweg::Runtime& runtime, const Node& of_graph) {
  const Node& node = of_graph.runs_as() ? *of_graph.runs_as() : of_graph;
  const std::string_view role = node.op().role;
  if (role == "const" || role == "placeholder" || role == "send" || role == "recv") return Status();
  if (thalweg::FlowOf(node.op()) != thalweg::Flow::kNone) return Status();
  std::string devices, types;
  for (const thalweg::Device* device : runtime.devices()) {
    ASSIGN_OR_RETURN(const thalweg::KernelDef* kernel, thalweg::ChooseKernel(runtime.registry(), *device, {node, {}, {}}));
    if (kernel) return Status();
    devices += thalweg::StrCat(devices.empty() ? "" : ", ", device->name());
  }
  for (const uint32_t type : node.types()) types += thalweg::StrCat(types.empty() ? "" : ", ", thalweg::DTypeName(type));
  return thalweg::OfNode(node, thalweg::Unimplemented(node.title(), ": no device has a kernel for types [", types, "]; devices: [", devices,
                                                      "]; load a plugin that has one"));
}

}  // namespace

tw_status* tw_graph_create(tw_runtime* runtime, tw_graph** out_graph) {
  NEED(out_graph);
  return Enter([&]() -> Status {
    ASSIGN_OR_RETURN(auto r, thalweg::RuntimeOf(runtime));
    *out_graph = new tw_graph(std::make_shared<thalweg::Graph>(std::move(r)));
    return Status();
  });
}

void tw_graph_destroy(tw_graph* graph) { delete graph; }

uint32_t tw_graph_count(const tw_graph* graph) { return graph ? uint32_t(graph->graph->size()) : 0; }

const tw_operation* tw_graph_operation(const tw_graph* graph, uint32_t i) {
  if (!graph || i >= tw_graph_count(graph)) return nullptr;
  return thalweg::OperationOf(*graph, graph->graph->node(int32_t(i)));
}

tw_status* tw_graph_find(const tw_graph* graph, const char* name, const tw_operation** out_operation) {
  NEED(graph);
  NEED(name);
  NEED(out_operation);
  return Enter([&]() -> Status {
    const Node* node = graph->graph->Find(name);
    if (!node) return NoNode(*graph->graph, name);
    ASSIGN_OR_RETURN(*out_operation, thalweg::NeedOperationOf(*graph, node));
    return Status();
  });
}

uint32_t tw_graph_has(const tw_graph* graph, const char* name) { return graph && name && graph->graph->Find(name); }

tw_status* tw_graph_find_output(const tw_graph* graph, const char* name, tw_output* out_output) {
  NEED(graph);
  NEED(name);
  NEED(out_output);
  return Enter([&]() -> Status {
    const auto edge = graph->graph->FindEdge(name);
    if (edge.status().code() == absl::StatusCode::kNotFound) {
      return NoNode(*graph->graph, std::string_view(name).substr(0, std::string_view(name).rfind(':')));
    }
    RETURN_IF_ERROR(edge.status());
    *out_output = thalweg::EncodeOutput(*graph->graph, *edge);
    return Status();
  });
}

tw_status* tw_graph_producer(const tw_graph* graph, tw_output output, const tw_operation** out_operation, uint32_t* out_index) {
  NEED(graph);
  return Enter([&]() -> Status {
    ASSIGN_OR_RETURN(const Edge edge, thalweg::DecodeOutput(*graph, output, "output"));
    if (out_operation) {
      ASSIGN_OR_RETURN(*out_operation, thalweg::NeedOperationOf(*graph, edge.node));
    }
    if (out_index) *out_index = uint32_t(edge.port);
    return Status();
  });
}

tw_status* tw_graph_close_loop(tw_graph* graph, const tw_operation* merge, uint32_t input, const tw_operation* next_iteration) {
  NEED(graph);
  return Enter([&]() -> Status {
    ASSIGN_OR_RETURN(const Node* to, thalweg::DecodeOperation(*graph->graph, merge, "merge"));
    ASSIGN_OR_RETURN(const Node* from, thalweg::DecodeOperation(*graph->graph, next_iteration, "next_iteration"));
    return graph->graph->CloseLoop(to, int32_t(std::min<uint32_t>(input, INT32_MAX)), from);
  });
}

tw_status* tw_graph_describe(const tw_graph* graph, tw_output output, uint32_t* out_dtype, tw_shape* out_shape) {
  NEED(graph);
  return Enter([&]() -> Status {
    ASSIGN_OR_RETURN(const Edge edge, thalweg::DecodeOutput(*graph, output, "output"));
    if (out_dtype) *out_dtype = edge.node->out_type(edge.port);
    if (out_shape) *out_shape = edge.node->shape(edge.port).c();
    return Status();
  });
}

tw_status* tw_graph_describe_contents(const tw_graph* graph, tw_output handle, uint32_t* out_dtype, tw_shape* out_shape) {
  NEED(graph);
  return Enter([&]() -> Status {
    ASSIGN_OR_RETURN(const Edge edge, thalweg::DecodeOutput(*graph, handle, "handle"));
    const thalweg::HandleInfo& contents = edge.node->handle(edge.port);
    if (out_dtype) *out_dtype = contents.dtype;
    if (out_shape) *out_shape = contents.shape.c();
    return Status();
  });
}

tw_status* tw_graph_import(tw_graph* graph, const void* data, uint64_t bytes, const tw_import_options* options) {
  NEED(graph);
  NEED_ARRAY(data, bytes);
  return Enter([&]() -> Status {
    thalweg::ImportOptions import;
    if (options) {
      RETURN_IF_ERROR(thalweg::CheckRecord("tw_import_options", options->size, options->flags, offsetof(tw_import_options, max_bytes)));
      import.prefix = thalweg::TextOrEmpty(options->prefix);
      import.default_device = thalweg::TextOrEmpty(options->device);
      if (HAS_FIELD(*options, max_bytes) && options->max_bytes) import.max_bytes = options->max_bytes;
      if (HAS_FIELD(*options, max_operations) && options->max_operations) import.max_nodes = options->max_operations;
      if (HAS_FIELD(*options, max_unfolded_bytes) && options->max_unfolded_bytes) import.max_splat_bytes = options->max_unfolded_bytes;
    }
    return thalweg::ImportGraphDef(data, bytes, import, graph->graph.get());
  });
}

tw_status* tw_graph_export(const tw_graph* graph, tw_buffer** out_bytes) {
  NEED(graph);
  NEED(out_bytes);
  return Enter([&]() -> Status {
    ASSIGN_OR_RETURN(std::string bytes, thalweg::ExportGraphDef(*graph->graph));
    *out_bytes = thalweg::MakeBuffer(std::move(bytes));
    return Status();
  });
}

tw_status* tw_graph_verify(tw_runtime* runtime, const void* data, uint64_t bytes) {
  NEED_ARRAY(data, bytes);
  return Enter([&]() -> Status {
    ASSIGN_OR_RETURN(auto r, thalweg::RuntimeOf(runtime));
    thalweg::Graph scratch(std::move(r));
    RETURN_IF_ERROR(thalweg::ImportGraphDef(data, bytes, thalweg::ImportOptions(), &scratch));
    RETURN_IF_ERROR(thalweg::CheckNothingLeftOut(scratch));
    for (int32_t i = 0; i < scratch.size(); ++i) RETURN_IF_ERROR(CheckKernel(RuntimeOf(scratch), *scratch.node(i)));
    return Status();
  });
}
