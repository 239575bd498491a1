// C forms of values and operations: numbers that identify their graph, and handles that live as
// long as the graph.
#include <new>

#include "c_api/handles.h"
#include "c_api/shim.h"

namespace thalweg {
namespace {

constexpr uint64_t kPortBits = 20, kIdBits = 28;

// Identifies a graph: addresses differ in the bits above the allocator's alignment. Two graphs may
// share a tag, but the check finds most mix-ups.
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

static StatusOr<Edge> Capture(Graph* body, Captures* captures, tw_output output, std::string_view what) {
  auto own = DecodeOutput(*body, output, what);
  if (own.ok() || !captures || output == 0) return own;
  std::lock_guard lock(captures->mu);
  if (const auto it = captures->known.find(output); it != captures->known.end()) return it->second;
  ASSIGN_OR_RETURN(const Edge outer, Capture(captures->around.get(), captures->beyond.get(), output, what));
  const tw_output around = EncodeOutput(*captures->around, outer);
  if (const auto it = captures->known.find(around); it != captures->known.end()) {
    captures->known.emplace(output, it->second);
    return it->second;
  }
  const std::string name = body->UniqueName(outer.node->name());
  const Tensor& constant = outer.node->value(outer.port);
  ASSIGN_OR_RETURN(const Edge made,
                   constant ? body->AddConst(constant, name, outer.node->place()) : body->AddArgument(outer, name, outer.node->place()));
  captures->known.emplace(output, made);
  captures->known.emplace(around, made);
  if (!constant) captures->arguments.emplace_back(around, made);
  return made;
}

StatusOr<Edge> DecodeOutput(const tw_graph& graph, tw_output output, std::string_view what) {
  return Capture(graph.graph.get(), graph.captures.get(), output, what);
}

StatusOr<Edge> DecodeAround(const tw_graph& body, tw_output output, std::string_view what) {
  return Capture(body.captures->around.get(), body.captures->beyond.get(), output, what);
}

std::unique_ptr<tw_graph> OpenBody(const tw_graph& around) {
  const auto is_marked_like = [&](const Graph& body) {
    if (Tag(body) == Tag(*around.graph)) return true;
    for (const Captures* c = around.captures.get(); c; c = c->beyond.get()) {
      if (Tag(body) == Tag(*c->around)) return true;
    }
    return false;
  };
  std::vector<std::shared_ptr<Graph>> alike;  // keeps their addresses in use until another tag is found
  auto body = Graph::Body(*around.graph);
  while (is_marked_like(*body)) {
    alike.push_back(std::move(body));
    body = Graph::Body(*around.graph);
  }
  auto made = std::make_unique<tw_graph>(std::move(body), true);
  made->captures = std::make_shared<Captures>();
  made->captures->around = around.graph;
  made->captures->beyond = around.captures;
  return made;
}

// Makes room for the handles of nodes below `n`. REQUIRES: graph.mu.
static void Grow(const tw_graph& graph, int32_t n) {
  while (int32_t(graph.operations.size()) < n) graph.operations.push_back({&graph, nullptr, nullptr});
}

void ReserveOperation(const tw_graph& graph) {
  std::lock_guard lock(graph.mu);
  Grow(graph, int32_t(graph.graph->size()) + 1);
}

const tw_operation* OperationOf(const tw_graph& graph, const Node* node) {
  if (!node || !ThreadEnters()) return nullptr;
  std::lock_guard lock(graph.mu);
  try {
    Grow(graph, node->id() + 1);
  } catch (const std::bad_alloc&) {
    return nullptr;  // a getter returns NULL instead of throwing through C
  }
  tw_operation& operation = graph.operations[size_t(node->id())];
  if (!operation.node) operation.node = node;  // assigned once, because holders of the handle read it without the lock
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
