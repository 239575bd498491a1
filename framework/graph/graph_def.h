// GraphDef, the stored form of graphs, in and out: TensorFlow's, byte-compatible.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "framework/base/status.h"
#include "framework/graph/graph.h"

namespace thalweg {

struct ImportOptions {
  std::string prefix;          // "scope": node "a" becomes "scope/a"
  std::string default_device;  // of nodes that name none
  // What a graph from outside may cost. Splat bytes: see tensor_proto.h.
  uint64_t max_bytes = (uint64_t{1} << 31) - 1;
  uint64_t max_nodes = 1u << 20;
  uint64_t max_splat_bytes = 64u << 20;
  bool function_body = false;  // inputs are written as those of a FunctionDef's nodes
};

// Output `i` of those that an output argument of the node stands for; -2: there is none.
int32_t PortOf(const Node& node, std::string_view argument, int32_t i);

// How an input of a NodeDef is written.
using InputText = std::function<std::string(const Edge&)>;
// A node as a serialised NodeDef.
StatusOr<std::string> NodeMessage(const Node& node, const InputText& text_of);

// Adds the nodes of a serialised GraphDef, checked as AddNode checks them: all, or none. They may stand in any order; those that do not
// wait for a later one keep their order. Attributes with a leading underscore, the library and fields that we do not know are kept byte
// for byte.
// Errors name node, op, attribute and input: INVALID_ARGUMENT for damaged bytes, duplicate names, inputs that lead nowhere, cycles, wrong
// types, attributes that the op does not have; NOT_FOUND for an op that no plugin defines; ALREADY_EXISTS where the graph has a node of
// the name; FAILED_PRECONDITION for a graph that asks for other readers; RESOURCE_EXHAUSTED beyond a limit.
Status ImportGraphDef(const void* bytes, uint64_t n, const ImportOptions& options, Graph* graph);

// The same graph gives the same bytes. Attributes stand in the order of their names, also those that have their default value.
// RESOURCE_EXHAUSTED where it would not fit into a message (2 GiB).
StatusOr<std::string> ExportGraphDef(const Graph& graph);

}  // namespace thalweg
