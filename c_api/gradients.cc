#include "thalweg/gradients.h"

#include <algorithm>

#include "c_api/handles.h"
#include "c_api/shim.h"
#include "framework/autodiff/autodiff.h"

using thalweg::Edge;
using thalweg::Status;
using thalweg::StrCat;

static thalweg::StatusOr<std::vector<Edge>> Edges(const tw_graph& graph, const tw_output* values, uint32_t n, const char* what) {
  std::vector<Edge> edges;
  for (uint32_t i = 0; i < n; ++i) {
    ASSIGN_OR_RETURN(const Edge e, thalweg::DecodeOutput(graph, values[i], StrCat(what, "[", i, "]")));
    edges.push_back(e);
  }
  return edges;
}

static tw_status* Add(const char* function, tw_graph* graph, const tw_output* ys, const tw_output* dys, uint32_t n_ys, const tw_output* xs,
                      uint32_t n_xs, const tw_output* until, uint32_t n_until, const thalweg::Keeping& keeping, tw_gradient* out_gradients,
                      const char* prefix = nullptr) {
  if (!graph) return thalweg::NullArgument(function, "graph");
  if (n_ys > 0 && !ys) return thalweg::NullArgument(function, "ys");
  if (n_xs > 0 && !xs) return thalweg::NullArgument(function, "xs");
  if (n_until > 0 && !until) return thalweg::NullArgument(function, "until");
  if (n_xs > 0 && !out_gradients) return thalweg::NullArgument(function, "out_gradients");
  return thalweg::Enter([&]() -> Status {
    thalweg::Graph& g = *graph->graph;
    ASSIGN_OR_RETURN(const std::vector<Edge> y, Edges(*graph, ys, n_ys, "ys"));
    ASSIGN_OR_RETURN(const std::vector<Edge> x, Edges(*graph, xs, n_xs, "xs"));
    std::vector<Edge> dy;
    for (uint32_t i = 0; dys && i < n_ys; ++i) {
      dy.emplace_back();
      if (dys[i] != 0) {
        ASSIGN_OR_RETURN(dy.back(), thalweg::DecodeOutput(*graph, dys[i], StrCat("dys[", i, "]")));
      }
    }
    ASSIGN_OR_RETURN(const std::vector<Edge> stop, Edges(*graph, until, n_until, "until"));
    std::vector<thalweg::Gradient> gradients;
    RETURN_IF_ERROR(thalweg::AddGradients(&g, y, dy, x, &gradients, stop, keeping, prefix ? prefix : ""));
    for (uint32_t i = 0; i < n_xs; ++i) {
      out_gradients[i] = {thalweg::EncodeOutput(g, gradients[i].values), thalweg::EncodeOutput(g, gradients[i].rows)};
    }
    return Status();
  });
}

tw_status* tw_gradients_add(tw_graph* graph, const tw_output* ys, const tw_output* dys, uint32_t n_ys, const tw_output* xs, uint32_t n_xs,
                            tw_gradient* out_gradients) {
  return Add(__func__, graph, ys, dys, n_ys, xs, n_xs, nullptr, 0, {}, out_gradients);
}

tw_status* tw_gradients_add_named(tw_graph* graph, const char* prefix, const tw_output* ys, const tw_output* dys, uint32_t n_ys,
                                  const tw_output* xs, uint32_t n_xs, tw_gradient* out_gradients) {
  return Add(__func__, graph, ys, dys, n_ys, xs, n_xs, nullptr, 0, {}, out_gradients, prefix);
}

tw_status* tw_gradients_add_until(tw_graph* graph, const tw_output* ys, const tw_output* dys, uint32_t n_ys, const tw_output* xs,
                                  uint32_t n_xs, const tw_output* until, uint32_t n_until, tw_gradient* out_gradients) {
  return Add(__func__, graph, ys, dys, n_ys, xs, n_xs, until, n_until, {}, out_gradients);
}

tw_status* tw_gradients_add_recomputing(tw_graph* graph, const tw_output* ys, const tw_output* dys, uint32_t n_ys, const tw_output* xs,
                                        uint32_t n_xs, const tw_output* until, uint32_t n_until, tw_gradient* out_gradients) {
  return Add(__func__, graph, ys, dys, n_ys, xs, n_xs, until, n_until, {true, nullptr}, out_gradients);
}

tw_status* tw_gradients_add_within(tw_graph* graph, const tw_output* ys, const tw_output* dys, uint32_t n_ys, const tw_output* xs,
                                   uint32_t n_xs, const tw_output* until, uint32_t n_until, uint64_t memory_budget,
                                   tw_gradient* out_gradients) {
  return Add(__func__, graph, ys, dys, n_ys, xs, n_xs, until, n_until, {false, &memory_budget}, out_gradients);
}

void tw_scope_gradients(tw_scope* scope, tw_output loss, const tw_output* xs, uint32_t n_xs, tw_gradient* out_gradients) {
  if (out_gradients) std::fill(out_gradients, out_gradients + n_xs, tw_gradient{0, 0});
  if (tw_graph* graph = tw_scope_graph(scope)) tw_scope_fail(scope, tw_gradients_add(graph, &loss, nullptr, 1, xs, n_xs, out_gradients));
}
