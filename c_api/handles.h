// Definitions of the opaque handles of the application API. Each wraps one object of the framework.
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
#include "framework/runtime/trace/step_stats.h"
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

// A node as seen from C; knows its graph, so that mixing values of two graphs is detected.
struct tw_operation {
  const tw_graph* graph;
  const thalweg::Node* node;
  mutable std::unique_ptr<thalweg::CAttrs> attrs;  // created on first use, under the graph handle's lock
};

namespace thalweg {

// The values of graphs around that an open body uses.
struct Captures {
  std::shared_ptr<Graph> around;
  std::shared_ptr<Captures> beyond;  // captures of the graph around, if it is an open body, too
  mutable std::mutex mu;             // locked before the mu of `beyond`
  std::unordered_map<tw_output, Edge> known;
  std::vector<std::pair<tw_output, Edge>> arguments;  // those of `known` that are not copied constants, in the order of first use
};

}  // namespace thalweg

struct tw_graph {
  explicit tw_graph(std::shared_ptr<thalweg::Graph> g, bool body = false) : graph(std::move(g)), is_body(body) {}
  std::shared_ptr<thalweg::Graph> graph;
  const bool is_body;
  std::shared_ptr<thalweg::Captures> captures;  // of an open body
  // One handle per node, by id; never moved. Grows when a later node is requested.
  mutable std::mutex mu;
  mutable std::deque<tw_operation> operations;
};

namespace thalweg {

// Returns the runtime of a handle; NULL means the default one.
StatusOr<std::shared_ptr<Runtime>> RuntimeOf(tw_runtime* runtime);

// Creates a runtime with the standard ops linked in.
StatusOr<std::shared_ptr<Runtime>> MakeRuntime(RuntimeOptions options);

tw_buffer* MakeBuffer(std::string bytes);

// Returns the handle of a node of this graph; NULL for NULL and when memory is out.
const tw_operation* OperationOf(const tw_graph& graph, const Node* node);
// The same for an existing node, with a status for out of memory.
StatusOr<const tw_operation*> NeedOperationOf(const tw_graph& graph, const Node* node);
// Reserves the handle of the next node before the node is added, because an added node cannot be
// removed. Throws bad_alloc.
void ReserveOperation(const tw_graph& graph);

// Encodes a value as a number: 16 bits of the graph's identity, 28 bits of node id + 1, 20 bits of
// port. Returns 0 if it does not fit.
tw_output EncodeOutput(const Graph& graph, const Edge& edge);
// Decodes a value. Errors: INVALID_ARGUMENT for 0 and for a value of another graph; `what` names
// the argument.
StatusOr<Edge> DecodeOutput(const Graph& graph, tw_output output, std::string_view what);
// The same for a graph that may be an open body: a value of a graph around becomes an argument.
StatusOr<Edge> DecodeOutput(const tw_graph& graph, tw_output output, std::string_view what);
// Decodes a value of the graph around an open body.
StatusOr<Edge> DecodeAround(const tw_graph& body, tw_output output, std::string_view what);
// Makes an open body inside `around`. Its tag differs from those of `around` and the graphs around
// it, so values are never confused.
std::unique_ptr<tw_graph> OpenBody(const tw_graph& around);
// Decodes an operation. Errors: INVALID_ARGUMENT for NULL and for an operation of another graph.
StatusOr<const Node*> DecodeOperation(const Graph& graph, const tw_operation* operation, std::string_view what);

// INVALID_ARGUMENT for a number that is not a TW_LOG_...
Status CheckLogLevel(uint32_t level);

// Splits "key=value". INVALID_ARGUMENT without a `=`.
Status SplitOption(const char* option, std::string_view* key, std::string_view* value);

}  // namespace thalweg
