// GraphDef, the stored form of graphs, in and out: TensorFlow's, byte-compatible.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/base/status.h"
#include "framework/graph/graph.h"

namespace thalweg {

// Of a node that calls a function by having its name as its op: the outputs [first, second) that each result stands for.
using CallOutputs = std::map<std::string, std::pair<int32_t, int32_t>, std::less<>>;

struct ImportOptions {
  std::string prefix;          // "scope": node "a" becomes "scope/a"
  std::string default_device;  // of nodes that name none
  // What a graph from outside may cost. Splat bytes: see tensor_proto.h.
  uint64_t max_bytes = (uint64_t{1} << 31) - 1;
  uint64_t max_nodes = 1u << 20;
  uint64_t max_splat_bytes = 64u << 20;
  // Of the nodes of a FunctionDef, whose inputs are written in another way:
  bool function_body = false;
  std::map<std::string, std::vector<std::string>, std::less<>> lists;       // arguments that stand for other than one value: their names
  std::map<std::string, HandleInfo, std::less<>> handles;                   // what arguments lead to, by name
  std::map<std::string, CallOutputs, std::less<>>* call_outputs = nullptr;  // filled, by node; NULL: nobody wants it
};

// An attribute of a node that calls a function by having its name as its op: that name. No attribute of a NodeDef has this one, and with it
// a node is written as it was read.
inline constexpr char kOpAsWritten[] = "";

// An input of a FunctionDef's node: "x" -> the argument x; "n:y:2" -> value 2 of output y of node n; "n:y" -> all of them, port kAllPorts;
// "^n" -> port -1. False for anything else, but the name may be none.
constexpr int32_t kAllPorts = -3;
bool SplitBodyInput(std::string_view text, std::string_view* name, std::string_view* argument, int32_t* port);
// The outputs [first, second) that an output argument of the node stands for; -1: there is no such argument. call: see CallOutputs; NULL:
// the node is written as the op that it is.
std::pair<int32_t, int32_t> OutputsOf(const Node& node, std::string_view argument, const CallOutputs* call);

class NodeLinks;  // node_links.h
// How an input of a NodeDef is written.
using InputText = std::function<std::string(const Edge&)>;
// A node as a serialised NodeDef. links: of its graph. as_written: what calls a function by having its name as its op goes on doing so.
StatusOr<std::string> NodeMessage(const Node& node, const NodeLinks& links, const InputText& text_of, bool as_written);

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
