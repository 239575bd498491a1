// Names in stored graphs: inputs of nodes, and the functions that nodes call. Threads: any.
#pragma once
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "framework/proto/graph.pb.h"

namespace thalweg::savedmodel {

// Returns the node of "node", "node:1", "node:out:1" or "^node".
std::string_view NodeOf(std::string_view input);
// Returns the last number of "node:1" or "node:out:1"; 0 without one.
int PortOf(std::string_view input);

// The nodes of a graph or function by name. The messages must outlive it.
using NodeMap = std::unordered_map<std::string_view, const proto::NodeDef*>;
template <class Nodes>
NodeMap ByName(const Nodes& nodes) {
  NodeMap map;
  for (const proto::NodeDef& n : nodes) map.emplace(n.name(), &n);
  return map;
}

// Appends the names of functions that the node's attributes name.
void FunctionsOf(const proto::NodeDef& node, std::vector<std::string_view>* names);

}  // namespace thalweg::savedmodel
