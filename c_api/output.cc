// Values and operations as C sees them: numbers that carry which graph they are of, and handles that live with it.
#include <new>

#include "c_api/handles.h"

namespace thalweg {
namespace {

constexpr uint64_t kPortBits = 20, kIdBits = 28;

// Tells graphs apart: addresses differ in the bits above the allocator's alignment. Not proof, but a mix-up seldom passes unnoticed.
uint64_t Tag(const Graph& graph) {
  const auto address = reinterpret_cast<uintptr_t>(&graph);
  return ((address >> 6) ^ (address >> 22) ^ (address >> 38)) & 0xffff;
}

}  // namespace

tw_output EncodeOutput(const Graph& graph, const Edge& edge) {
  if (!edge.node) return 0;
  const uint64_t id = uint64_t(edge.node->id()) + 1, port = uint64_t(edge.port);
  if (id >> kIdBits || port >> kPortBits) return 0;
  return (Tag(graph) << (kIdBits + kPortBits)) | (id << kPortBits) | port;
}

StatusOr<Edge> DecodeOutput(const Graph& graph, tw_output output, std::string_view what) {
  if (output == 0) return InvalidArgument(what, " is 0, which is no value; what made it has failed");
  const uint64_t id = (output >> kPortBits) & ((uint64_t{1} << kIdBits) - 1), port = output & ((uint64_t{1} << kPortBits) - 1);
  if (output >> (kIdBits + kPortBits) != Tag(graph) || id == 0 || id > uint64_t(graph.size())) {
    return InvalidArgument(what, " is a value of another graph");
  }
  const Node* node = graph.node(int32_t(id) - 1);
  if (port >= uint64_t(node->n_out()))
    return InvalidArgument(what, " is output ", port, " of ", node->title(), ", which has ", node->n_out());
  return Edge{node, int32_t(port)};
}

// Room for the handles of nodes below `n`. REQUIRES: graph.mu.
static void Grow(const tw_graph& graph, int32_t n) {
  while (int32_t(graph.operations.size()) < n) graph.operations.push_back({&graph, nullptr, nullptr});
}

void ReserveOperation(const tw_graph& graph) {
  std::lock_guard lock(graph.mu);
  Grow(graph, int32_t(graph.graph->size()) + 1);
}

const tw_operation* OperationOf(const tw_graph& graph, const Node* node) {
  if (!node) return nullptr;
  std::lock_guard lock(graph.mu);
  try {
    Grow(graph, node->id() + 1);
  } catch (const std::bad_alloc&) {
    return nullptr;  // looking answers NULL rather than throw through C
  }
  tw_operation& operation = graph.operations[size_t(node->id())];
  if (!operation.node) operation.node = node;  // who has the handle looks without the lock
  return &operation;
}

StatusOr<const tw_operation*> NeedOperationOf(const tw_graph& graph, const Node* node) {
  const tw_operation* operation = OperationOf(graph, node);
  if (!operation) return ResourceExhausted("out of host memory for the handle of ", node->title());
  return operation;
}

StatusOr<const Node*> DecodeOperation(const Graph& graph, const tw_operation* operation, std::string_view what) {
  if (!operation) return InvalidArgument(what, " is NULL");
  if (operation->graph->graph.get() != &graph) return InvalidArgument(what, ", ", operation->node->title(), ", belongs to another graph");
  return operation->node;
}

}  // namespace thalweg
