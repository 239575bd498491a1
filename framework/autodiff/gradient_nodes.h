// Nodes of gradients beside those that the ops' own builders add. Ops are found by their roles.
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

// Adds a node whose op has that role. REQUIRES: it has inputs; the first one gives its place in the
// program.
StatusOr<Edge> AddRole(Graph* g, std::string_view role, std::vector<Edge> in, std::map<std::string, AttrValue> attrs,
                       const std::string& scope, const std::string& device = "");
// Returns the shape of a value as a vector of int32 or int64: a constant if the shape is known.
StatusOr<Edge> ShapeVector(Graph* g, Edge e, uint32_t dtype, const std::string& scope);

}  // namespace thalweg
