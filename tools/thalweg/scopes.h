// A graph by the scopes of its names: "conv1/filter" is the operation filter in the scope conv1.
#pragma once
#include <string>
#include <vector>

#include "thalweg/cpp/thalweg.hpp"

namespace thalweg::cli {

// Names are not taken apart any deeper.
constexpr size_t kDeepestScope = 64;

// An operation, or a scope; where there are both of one name, the operation comes first.
struct ScopeNode {
  std::string name;                  // the last part
  const tw_operation* op = nullptr;  // NULL: a scope
  std::vector<ScopeNode> children;   // in the graph's order
  size_t operations = 0;             // in it, at any depth
};

// The root, without a name.
ScopeNode ScopesOf(const tw::Graph& graph);
// Nodes that are seen when scopes are open down to `depth`: 1 shows what is in the root.
size_t CountVisible(const ScopeNode& root, size_t depth);
// The largest depth that shows at most `most` nodes; at least 1.
size_t ChooseDepth(const ScopeNode& root, size_t most);

}  // namespace thalweg::cli
