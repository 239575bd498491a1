// What the opaque handles of the application API are made of. Each wraps one object of the framework.
#pragma once
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "framework/graph/attr_value.h"
#include "framework/graph/graph.h"
#include "framework/runtime/runtime.h"
#include "framework/runtime/step_stats.h"
#include "thalweg/graph.h"

struct tw_buffer {
  std::atomic<int32_t> refs{1};
  std::string bytes;
};

struct tw_step_stats {
  thalweg::StepStats stats;
};

struct tw_runtime {
  std::atomic<int32_t> refs{1};
  std::shared_ptr<thalweg::Runtime> runtime;
};

// A node as seen from C; knows its graph, so that values of two graphs are not mixed up unnoticed.
struct tw_operation {
  const tw_graph* graph;
  const thalweg::Node* node;
  mutable std::unique_ptr<thalweg::CAttrs> attrs;  // made when first asked for, under the graph handle's lock
};

namespace thalweg {

// The values from around that an open body uses.
struct Captures {
  std::shared_ptr<Graph> around;
  std::shared_ptr<Captures> beyond;  // where the graph around is an open body, too
  mutable std::mutex mu;             // before that of `beyond`
  std::unordered_map<tw_output, Edge> known;
  std::vector<std::pair<tw_output, Edge>> arguments;  // of `known`, those that are no copied constants, in the order of first use
};

}  // namespace thalweg

struct tw_graph {
  explicit tw_graph(std::shared_ptr<thalweg::Graph> g, bool body = false) : graph(std::move(g)), is_body(body) {}
  std::shared_ptr<thalweg::Graph> graph;
  const bool is_body;
  std::shared_ptr<thalweg::Captures> captures;  // of an open body
  // One per node, by id; never moved. Grows when asked for a node beyond.
  mutable std::mutex mu;
  mutable std::deque<tw_operation> operations;
};

namespace thalweg {

// The runtime behind a handle, NULL being the default one.
StatusOr<std::shared_ptr<Runtime>> RuntimeOf(tw_runtime* runtime);

// A runtime with the standard ops linked in.
StatusOr<std::shared_ptr<Runtime>> MakeRuntime(RuntimeOptions options);

tw_buffer* MakeBuffer(std::string bytes);

// The handle of a node of this graph; NULL for NULL and when memory is out.
const tw_operation* OperationOf(const tw_graph& graph, const Node* node);
// The same of a node that is there, where NULL cannot be told from success.
StatusOr<const tw_operation*> NeedOperationOf(const tw_graph& graph, const Node* node);
// Room for the handle of the next node, made before the node is, which then cannot be taken back. Throws bad_alloc.
void ReserveOperation(const tw_graph& graph);

// A value as a number: 16 bits of the graph's identity, 28 bits of node id + 1, 20 bits of port. 0 for what does not fit.
tw_output EncodeOutput(const Graph& graph, const Edge& edge);
// Errors: INVALID_ARGUMENT for 0 and for a value of another graph; `what` names the argument.
StatusOr<Edge> DecodeOutput(const Graph& graph, tw_output output, std::string_view what);
// The same for a graph that may be an open body: a value from around becomes an argument.
StatusOr<Edge> DecodeOutput(const tw_graph& graph, tw_output output, std::string_view what);
// A value of the graph around an open body.
StatusOr<Edge> DecodeAround(const tw_graph& body, tw_output output, std::string_view what);
// An open body inside `around`; values of the two, and of what is around both, are never taken for each other.
std::unique_ptr<tw_graph> OpenBody(const tw_graph& around);
// Errors: INVALID_ARGUMENT for NULL and for an operation of another graph.
StatusOr<const Node*> DecodeOperation(const Graph& graph, const tw_operation* operation, std::string_view what);

// INVALID_ARGUMENT for a number that is no TW_LOG_...
Status CheckLogLevel(uint32_t level);

// Splits "key=value". INVALID_ARGUMENT without a `=`.
Status SplitOption(const char* option, std::string_view* key, std::string_view* value);

}  // namespace thalweg
