// Nodes that gradients are made of beside those of the ops' own builders. Ops are found by the roles that they play.
// Threads: one at a time per graph.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "framework/autodiff/autodiff.h"
#include "framework/base/status.h"
#include "framework/graph/graph.h"

namespace thalweg {

// Adds a node whose op plays a role. REQUIRES: it has inputs, the first of which tells its place in the program.
StatusOr<Edge> AddRole(Graph* g, std::string_view role, std::vector<Edge> in, std::map<std::string, AttrValue> attrs,
                       const std::string& scope, const std::string& device = "");
// The shape of a value as a vector of int32 or int64: a constant where it is known.
StatusOr<Edge> ShapeVector(Graph* g, Edge e, uint32_t dtype, const std::string& scope);

}  // namespace thalweg
