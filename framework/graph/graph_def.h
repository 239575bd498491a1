// Import and export of GraphDef, the stored form of graphs. Byte-compatible with TensorFlow's.
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

// For a node whose op is the name of a function: the outputs [first, second) of each result of the
// function.
using CallOutputs = std::map<std::string, std::pair<int32_t, int32_t>, std::less<>>;

struct ImportOptions {
  std::string prefix;          // "scope": node "a" becomes "scope/a"
  std::string default_device;  // for nodes that name none
  // Limits for graphs from outside. Splat bytes: see tensor_proto.h.
  uint64_t max_bytes = (uint64_t{1} << 31) - 1;
  uint64_t max_nodes = 1u << 20;
  uint64_t max_splat_bytes = 64u << 20;
  // For the nodes of a FunctionDef, whose inputs have another syntax:
  bool function_body = false;
  std::map<std::string, std::vector<std::string>, std::less<>> lists;       // value names of arguments that stand for several
  std::map<std::string, HandleInfo, std::less<>> handles;                   // by argument name: dtype and shape behind its handle
  std::map<std::string, CallOutputs, std::less<>>* call_outputs = nullptr;  // filled, by node; NULL: not wanted
};

// The name of an attribute of nodes whose op was written as the name of a function; its value is
// that name. No attribute of a NodeDef has an empty name. The attribute lets a node be written as
// it was read.
inline constexpr char kOpAsWritten[] = "";

// Splits an input of a FunctionDef's node: "x" is the argument x; "n:y:2" is value 2 of output y of
// node n; "n:y" is all of them, port kAllPorts; "^n" gives port -1. Returns false for any other
// syntax; the name may not exist.
constexpr int32_t kAllPorts = -3;
bool SplitBodyInput(std::string_view text, std::string_view* name, std::string_view* argument, int32_t* port);
// Returns the outputs [first, second) of the node that an output argument stands for; -1 if there
// is no such argument. call: see CallOutputs; NULL if the node is written as its own op.
std::pair<int32_t, int32_t> OutputsOf(const Node& node, std::string_view argument, const CallOutputs* call);

class NodeLinks;  // node_links.h
// Formats an input for a NodeDef.
using InputText = std::function<std::string(const Edge&)>;
// Returns the node as a serialised NodeDef. links: those of its graph. as_written: a node whose op
// was written as the name of a function is written so again.
StatusOr<std::string> NodeMessage(const Node& node, const NodeLinks& links, const InputText& text_of, bool as_written);

// Adds the nodes of a serialised GraphDef, checked as AddNode checks them; all or none. They may be
// in any order; nodes that do not need a later one keep their order. Attributes with a leading
// underscore, the library and unknown fields are kept byte for byte.
// Errors name node, op, attribute and input: INVALID_ARGUMENT for damaged bytes, duplicate names,
// dangling inputs, cycles, wrong types, attributes that the op does not have; NOT_FOUND for an op
// that no plugin defines; ALREADY_EXISTS if the graph has a node of the name; FAILED_PRECONDITION
// for a graph that requires other readers; RESOURCE_EXHAUSTED beyond a limit.
Status ImportGraphDef(const void* bytes, uint64_t n, const ImportOptions& options, Graph* graph);

// Serialises the graph; equal graphs give equal bytes. Attributes are sorted by name and include
// those with default values. RESOURCE_EXHAUSTED if the result exceeds the limit of a message (2
// GiB).
StatusOr<std::string> ExportGraphDef(const Graph& graph);

}  // namespace thalweg
