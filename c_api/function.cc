#include "thalweg/function.h"

#include "c_api/handles.h"
#include "c_api/shim.h"
#include "framework/graph/function.h"

using thalweg::Edge;
using thalweg::Guard;
using thalweg::Status;

namespace {

thalweg::StatusOr<std::vector<Edge>> DecodeAll(const thalweg::Graph& graph, const tw_output* values, uint32_t n, std::string_view what) {
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

}  // namespace

tw_status* tw_graph_create_body(tw_graph* graph, tw_graph** out_body) {
  NEED(graph);
  NEED(out_body);
  return Guard([&]() -> Status {
    *out_body = new tw_graph(thalweg::Graph::Body(*graph->graph));
    return Status();
  });
}

tw_status* tw_graph_capture(tw_graph* body, const tw_graph* from, tw_output output, const char* name, tw_output* out_value,
                            uint32_t* out_is_argument) {
  NEED(body);
  NEED(from);
  NEED(out_value);
  NEED(out_is_argument);
  return Guard([&]() -> Status {
    ASSIGN_OR_RETURN(const Edge edge, thalweg::DecodeOutput(*from->graph, output, "output"));
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
  return Guard([&]() -> Status {
    RETURN_IF_ERROR(thalweg::CheckRecord("tw_function_spec", what->size, what->flags, sizeof(tw_function_spec)));
    if (!what->name) return thalweg::InvalidArgument("tw_function_spec: 'name' is NULL");
    for (auto [list, n] :
         {std::pair<const void*, uint32_t>{what->args, what->n_args}, {what->results, what->n_results}, {what->targets, what->n_targets}}) {
      if (!list && n > 0) return thalweg::InvalidArgument("tw_function_spec: a list of ", n, " is NULL");
    }
    thalweg::FunctionSpec spec;
    spec.body = body->graph;
    ASSIGN_OR_RETURN(spec.args, DecodeAll(*body->graph, what->args, what->n_args, "argument"));
    ASSIGN_OR_RETURN(spec.results, DecodeAll(*body->graph, what->results, what->n_results, "result"));
    for (uint32_t t = 0; t < what->n_targets; ++t) {
      ASSIGN_OR_RETURN(const thalweg::Node* n, thalweg::DecodeOperation(*body->graph, what->targets[t], thalweg::StrCat("target ", t)));
      spec.targets.push_back(n);
    }
    ASSIGN_OR_RETURN(auto library, LibraryOf(*graph));
    if (body->graph->functions() != library) return thalweg::InvalidArgument("the body was made for another graph");
    spec.name = what->make_unique ? library->UniqueName(what->name) : std::string(what->name);
    ASSIGN_OR_RETURN(auto function, thalweg::Function::Make(std::move(spec)));
    RETURN_IF_ERROR(library->Add(function));
    if (out_name) *out_name = function->name().c_str();
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
  return Guard([&]() -> Status {
    ASSIGN_OR_RETURN(auto library, LibraryOf(*graph));
    const std::vector<std::string> names = library->Names();
    if (i >= names.size()) return thalweg::InvalidArgument("the graph has ", names.size(), " functions, not one of number ", i);
    *out_name = thalweg::MakeBuffer(names[i]);
    return Status();
  });
}
