#include "thalweg/function.h"

#include "c_api/geometry.h"
#include "c_api/handles.h"
#include "c_api/shim.h"
#include "framework/base/dtype.h"
#include "framework/graph/flatten.h"
#include "framework/graph/function.h"
#include "framework/graph/outline.h"

using thalweg::Edge;
using thalweg::Enter;
using thalweg::Status;

namespace {

thalweg::StatusOr<std::vector<Edge>> DecodeAll(const tw_graph& graph, const tw_output* values, uint32_t n, std::string_view what) {
  std::vector<Edge> edges(n);
  for (uint32_t i = 0; i < n; ++i) {
    ASSIGN_OR_RETURN(edges[i], thalweg::DecodeOutput(graph, values[i], thalweg::StrCat(what, " ", i)));
  }
  return edges;
}

thalweg::StatusOr<std::shared_ptr<thalweg::FunctionLibrary>> LibraryOf(const tw_graph& graph) {
  auto library = graph.graph->functions();
  if (!library) return thalweg::FailedPrecondition("the graph is a body whose outer graph is gone");
  return library;
}

Status CheckSpec(const tw_function_spec& what) {
  RETURN_IF_ERROR(thalweg::CheckRecord("tw_function_spec", what.size, what.flags, sizeof(tw_function_spec)));
  if (!what.name) return thalweg::InvalidArgument("tw_function_spec: 'name' is NULL");
  for (auto [list, n] :
       {std::pair<const void*, uint32_t>{what.args, what.n_args}, {what.results, what.n_results}, {what.targets, what.n_targets}}) {
    if (!list && n > 0) return thalweg::InvalidArgument("tw_function_spec: a list of ", n, " is NULL");
  }
  return Status();
}

// Decodes values and operations of the graph into a thalweg::FunctionSpec or PartSpec.
template <class Spec>
Status Decode(const tw_graph& graph, const tw_function_spec& what, Spec* spec) {
  ASSIGN_OR_RETURN(spec->args, DecodeAll(graph, what.args, what.n_args, "argument"));
  ASSIGN_OR_RETURN(spec->results, DecodeAll(graph, what.results, what.n_results, "result"));
  for (uint32_t t = 0; t < what.n_targets; ++t) {
    ASSIGN_OR_RETURN(const thalweg::Node* n, thalweg::DecodeOperation(*graph.graph, what.targets[t], thalweg::StrCat("target ", t)));
    spec->targets.push_back(n);
  }
  return Status();
}

}  // namespace

tw_status* tw_graph_create_body(tw_graph* graph, tw_graph** out_body) {
  NEED(graph);
  NEED(out_body);
  return Enter([&]() -> Status {
    *out_body = new tw_graph(thalweg::Graph::Body(*graph->graph), true);
    return Status();
  });
}

tw_status* tw_graph_open_body(tw_graph* graph, tw_graph** out_body) {
  NEED(graph);
  NEED(out_body);
  return Enter([&]() -> Status {
    *out_body = thalweg::OpenBody(*graph).release();
    return Status();
  });
}

uint32_t tw_graph_is_body(const tw_graph* graph) { return graph && graph->is_body; }

tw_status* tw_graph_add_argument(tw_graph* body, tw_output like, const tw_shape* shape, tw_output* out_argument) {
  NEED(body);
  NEED(out_argument);
  return Enter([&]() -> Status {
    if (!body->captures) return thalweg::InvalidArgument("the graph is no open body");
    ASSIGN_OR_RETURN(const Edge outer, thalweg::DecodeAround(*body, like, "like"));
    ASSIGN_OR_RETURN(const thalweg::OpSchema* op, body->graph->host().FindRole("placeholder"));
    thalweg::NodeSpec spec;
    spec.op = op->name;
    spec.name = body->graph->UniqueName(outer.node->name());
    spec.place = outer.node->place();
    spec.handle = outer.node->handle(outer.port);
    spec.attrs["dtype"] = thalweg::AttrValue::Type(thalweg::BaseType(outer.node->out_type(outer.port)));
    thalweg::Shape known = outer.node->shape(outer.port);
    if (shape) {
      ASSIGN_OR_RETURN(known, thalweg::ToShape(shape->dims, shape->rank));
    }
    spec.attrs["shape"] = thalweg::AttrValue::OfShape(known);
    ASSIGN_OR_RETURN(const thalweg::Node* made, body->graph->AddNode(std::move(spec)));
    *out_argument = thalweg::EncodeOutput(*body->graph, {made, 0});
    return Status();
  });
}

tw_status* tw_graph_own(tw_graph* graph, tw_output value, tw_output* out_own) {
  NEED(graph);
  NEED(out_own);
  return Enter([&]() -> Status {
    ASSIGN_OR_RETURN(const Edge own, thalweg::DecodeOutput(*graph, value, "value"));
    *out_own = thalweg::EncodeOutput(*graph->graph, own);
    return Status();
  });
}

uint32_t tw_graph_captured_count(const tw_graph* body) {
  if (!body || !body->captures) return 0;
  std::lock_guard lock(body->captures->mu);
  return uint32_t(body->captures->arguments.size());
}

tw_status* tw_graph_captured(const tw_graph* body, uint32_t i, tw_output* out_value, tw_output* out_argument) {
  NEED(body);
  return Enter([&]() -> Status {
    if (i >= tw_graph_captured_count(body)) {
      return thalweg::InvalidArgument("the graph has arguments for ", tw_graph_captured_count(body),
                                      " values from around, not one of number ", i);
    }
    std::lock_guard lock(body->captures->mu);
    const auto& [value, argument] = body->captures->arguments[i];
    if (out_value) *out_value = value;
    if (out_argument) *out_argument = thalweg::EncodeOutput(*body->graph, argument);
    return Status();
  });
}

tw_status* tw_graph_capture(tw_graph* body, const tw_graph* from, tw_output output, const char* name, tw_output* out_value,
                            uint32_t* out_is_argument) {
  NEED(body);
  NEED(from);
  NEED(out_value);
  NEED(out_is_argument);
  return Enter([&]() -> Status {
    ASSIGN_OR_RETURN(const Edge edge, thalweg::DecodeOutput(*from->graph, output, "output"));
    if (body->captures && body->captures->around == from->graph) {
      ASSIGN_OR_RETURN(const Edge made, thalweg::DecodeOutput(*body, output, "output"));
      *out_value = thalweg::EncodeOutput(*body->graph, made);
      *out_is_argument = !made.node->value(made.port);
      return Status();
    }
    const thalweg::Tensor& known = edge.node->value(edge.port);
    const std::string named = name ? name : body->graph->UniqueName(edge.node->name());
    Edge made;
    if (known) {
      ASSIGN_OR_RETURN(made, body->graph->AddConst(known, named, edge.node->place()));
    } else {
      ASSIGN_OR_RETURN(made, body->graph->AddArgument(edge, named, edge.node->place()));
    }
    *out_value = thalweg::EncodeOutput(*body->graph, made);
    *out_is_argument = !known;
    return Status();
  });
}

tw_status* tw_graph_add_function(tw_graph* graph, tw_graph* body, const tw_function_spec* what, const char** out_name) {
  NEED(graph);
  NEED(body);
  NEED(what);
  return Enter([&]() -> Status {
    RETURN_IF_ERROR(CheckSpec(*what));
    thalweg::FunctionSpec spec;
    spec.body = body->graph;
    RETURN_IF_ERROR(Decode(*body, *what, &spec));
    ASSIGN_OR_RETURN(auto library, LibraryOf(*graph));
    if (body->graph->functions() != library) return thalweg::InvalidArgument("the body was made for another graph");
    spec.name = what->make_unique ? library->UniqueName(what->name) : std::string(what->name);
    ASSIGN_OR_RETURN(auto function, thalweg::Function::Make(std::move(spec)));
    RETURN_IF_ERROR(library->Add(function));
    if (out_name) *out_name = function->name().c_str();
    return Status();
  });
}

tw_status* tw_graph_outline(tw_graph* graph, const tw_function_spec* what, const tw_operation** out_call) {
  NEED(graph);
  NEED(what);
  NEED(out_call);
  return Enter([&]() -> Status {
    RETURN_IF_ERROR(CheckSpec(*what));
    thalweg::PartSpec part;
    RETURN_IF_ERROR(Decode(*graph, *what, &part));
    ASSIGN_OR_RETURN(auto library, LibraryOf(*graph));
    part.name = what->make_unique ? library->UniqueName(what->name) : std::string(what->name);
    thalweg::ReserveOperation(*graph);
    ASSIGN_OR_RETURN(const thalweg::Node* call, thalweg::Outline(graph->graph.get(), part));
    *out_call = thalweg::OperationOf(*graph, call);
    return Status();
  });
}

tw_status* tw_graph_flatten(const tw_graph* graph, const tw_output* inputs, uint32_t n_inputs, const tw_output* outputs, uint32_t n_outputs,
                            tw_graph** out_graph, tw_output* out_inputs, tw_output* out_outputs) {
  NEED(graph);
  NEED_ARRAY(inputs, n_inputs);
  NEED_ARRAY(outputs, n_outputs);
  NEED(out_graph);
  NEED_ARRAY(out_inputs, n_inputs);
  NEED_ARRAY(out_outputs, n_outputs);
  return Enter([&]() -> Status {
    ASSIGN_OR_RETURN(const auto from, DecodeAll(*graph, inputs, n_inputs, "input"));
    ASSIGN_OR_RETURN(const auto to, DecodeAll(*graph, outputs, n_outputs, "output"));
    ASSIGN_OR_RETURN(thalweg::FlatGraph flat, thalweg::Flatten(*graph->graph, from, to));
    auto made = std::make_unique<tw_graph>(std::move(flat.graph), true);
    for (uint32_t i = 0; i < n_inputs; ++i) out_inputs[i] = thalweg::EncodeOutput(*made->graph, flat.inputs[i]);
    for (uint32_t i = 0; i < n_outputs; ++i) out_outputs[i] = thalweg::EncodeOutput(*made->graph, flat.outputs[i]);
    *out_graph = made.release();
    return Status();
  });
}

uint32_t tw_graph_function_count(const tw_graph* graph) {
  const auto library = graph ? graph->graph->functions() : nullptr;
  return library ? uint32_t(library->Names().size()) : 0;
}

tw_status* tw_graph_function_name(const tw_graph* graph, uint32_t i, tw_buffer** out_name) {
  NEED(graph);
  NEED(out_name);
  return Enter([&]() -> Status {
    ASSIGN_OR_RETURN(auto library, LibraryOf(*graph));
    const std::vector<std::string> names = library->Names();
    if (i >= names.size()) return thalweg::InvalidArgument("the graph has ", names.size(), " functions, not one of number ", i);
    *out_name = thalweg::MakeBuffer(names[i]);
    return Status();
  });
}
