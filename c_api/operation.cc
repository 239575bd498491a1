// Read access to operations.
#include "c_api/handles.h"
#include "c_api/shim.h"
#include "framework/graph/graph_def.h"
#include "framework/graph/node_links.h"
#include "framework/runtime/runtime.h"
#include "framework/runtime/runtime_of.h"
#include "thalweg/op.h"
#include "thalweg/plugin/resource.h"
#include "thalweg/status.h"

using thalweg::Status;

const char* tw_operation_name(const tw_operation* operation) { return operation ? operation->node->name().c_str() : ""; }

const char* tw_operation_type(const tw_operation* operation) { return operation ? operation->node->op().name.c_str() : ""; }

const char* tw_operation_device(const tw_operation* operation) { return operation ? operation->node->device().c_str() : ""; }

const char* tw_operation_place(const tw_operation* operation) {
  return operation && !operation->node->place().empty() ? operation->node->place().data() : "";  // a text that the graph owns
}

uint32_t tw_operation_input_count(const tw_operation* operation) { return operation ? uint32_t(operation->node->n_in()) : 0; }

tw_output tw_operation_input(const tw_operation* operation, uint32_t i) {
  if (i >= tw_operation_input_count(operation)) return 0;
  const thalweg::Node* back = operation->node->back(int32_t(i));
  return thalweg::EncodeOutput(*operation->graph->graph, back ? thalweg::Edge{back, 0} : operation->node->inputs()[i]);
}

uint32_t tw_operation_output_count(const tw_operation* operation) { return operation ? uint32_t(operation->node->n_out()) : 0; }

tw_output tw_operation_output(const tw_operation* operation, uint32_t i) {
  if (i >= tw_operation_output_count(operation)) return 0;
  return thalweg::EncodeOutput(*operation->graph->graph, {operation->node, int32_t(i)});
}

const char* tw_operation_resource(const tw_operation* operation, uint32_t i, uint32_t* out_saved) {
  if (out_saved) *out_saved = 0;
  if (i >= tw_operation_output_count(operation)) return nullptr;
  const thalweg::Node& node = *operation->node;
  size_t a = 0;
  while (node.out_at()[a + 1] <= i) ++a;
  const bool made = node.runs_as() && i < uint32_t(node.runs_as()->n_out());  // a reference to the operation's own variable
  const std::string& type = (made ? node.runs_as()->op() : node.op()).outputs[a].resource;
  if (type.empty()) return nullptr;
  if (!out_saved) return type.c_str();
  tw_status_release(thalweg::Enter([&]() -> Status {
    const thalweg::ResourceType* known = RuntimeOf(*operation->graph->graph).registry().FindResourceType(type);
    *out_saved = type == TW_VARIABLE_TYPE || (known && known->saves);
    return Status();
  }));
  return type.c_str();
}

uint32_t tw_operation_is_stateful(const tw_operation* operation) { return operation && operation->node->op().stateful; }

uint32_t tw_operation_control_count(const tw_operation* operation) { return operation ? uint32_t(operation->node->controls().size()) : 0; }

const tw_operation* tw_operation_control(const tw_operation* operation, uint32_t i) {
  if (i >= tw_operation_control_count(operation)) return nullptr;
  return thalweg::OperationOf(*operation->graph, operation->node->controls()[i]);
}

uint32_t tw_operation_attr_count(const tw_operation* operation) { return operation ? uint32_t(operation->node->op().attrs.size()) : 0; }

const char* tw_operation_attr_name(const tw_operation* operation, uint32_t i) {
  return i < tw_operation_attr_count(operation) ? operation->node->op().attrs[i].name.c_str() : nullptr;
}

static thalweg::StatusOr<size_t> FindAttr(const tw_operation* operation, const char* attr) {
  const int i = operation->node->op().FindAttr(attr);
  if (i < 0) return thalweg::NotFound(operation->node->title(), " has no attribute '", attr, "'");
  return size_t(i);
}

tw_status* tw_operation_attr(const tw_operation* operation, const char* attr, uint32_t* out_kind, uint32_t* out_is_list,
                             uint32_t* out_count, const void** out_values) {
  NEED(operation);
  NEED(attr);
  return thalweg::Enter([&]() -> Status {
    ASSIGN_OR_RETURN(const size_t i, FindAttr(operation, attr));
    const tw_attr* found = nullptr;
    {
      std::lock_guard lock(operation->graph->mu);
      if (!operation->attrs) {
        auto attrs = std::make_unique<thalweg::CAttrs>();
        operation->node->FillC(attrs.get());
        operation->attrs = std::move(attrs);
      }
      found = operation->attrs->data() + i;
    }
    if (out_kind) *out_kind = found->kind;
    if (out_is_list) *out_is_list = found->is_list;
    if (out_count) *out_count = found->count;
    if (out_values) *out_values = found->data;
    return Status();
  });
}

tw_status* tw_operation_attr_text(const tw_operation* operation, const char* attr, tw_buffer** out_text) {
  NEED(operation);
  NEED(attr);
  NEED(out_text);
  return thalweg::Enter([&]() -> Status {
    ASSIGN_OR_RETURN(const size_t i, FindAttr(operation, attr));
    *out_text = thalweg::MakeBuffer(operation->node->attrs()[i].text());
    return Status();
  });
}

tw_status* tw_operation_message(const tw_operation* operation, tw_buffer** out_bytes) {
  NEED(operation);
  NEED(out_bytes);
  return thalweg::Enter([&]() -> Status {
    const thalweg::NodeLinks links(*operation->graph->graph);
    ASSIGN_OR_RETURN(std::string message,
                     thalweg::NodeMessage(*operation->node, links, [](const thalweg::Edge& e) { return e.text(); }, true));
    *out_bytes = thalweg::MakeBuffer(std::move(message));
    return Status();
  });
}
