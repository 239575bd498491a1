// Cuts a GraphDef down to the nodes and functions that some of its nodes need.
// Threads: values, no sharing.
#pragma once
#include <string>
#include <vector>

#include "framework/base/status.h"

namespace thalweg {

namespace proto {
class GraphDef;
}  // namespace proto

// Removes every node that none of the named ones needs by an input or a control input, and every function that none of the remaining
// nodes calls, directly or through functions. Nodes keep their order; requests to be near removed nodes (`_class`) are dropped.
// INVALID_ARGUMENT for a name that the graph does not have.
Status PruneGraphDef(const std::vector<std::string>& names, proto::GraphDef* graph);

// The node that an input of a NodeDef names: "n", "n:1" and "^n" name n.
std::string NodeOfInput(const std::string& input);

}  // namespace thalweg
