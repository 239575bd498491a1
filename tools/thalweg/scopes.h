// The scopes of a graph, from its names: "conv1/filter" is the operation filter in the scope conv1.
#pragma once
#include <string>
#include <vector>

#include "thalweg/cpp/thalweg.hpp"

namespace thalweg::cli {

// The limit of nesting; a deeper name is not split further.
constexpr size_t kDeepestScope = 64;

// An operation or a scope. If both have the same name, the operation comes first.
struct ScopeNode {
  std::string name;                  // the last part of the full name
  const tw_operation* op = nullptr;  // NULL: a scope
  std::vector<ScopeNode> children;   // in the graph's order
  size_t operations = 0;             // number of operations in it, at any depth
};

// Returns the root, which has no name.
ScopeNode ScopesOf(const tw::Graph& graph);
// Returns the number of visible nodes if scopes are open down to `depth`; 1 shows the children of
// the root.
size_t CountVisible(const ScopeNode& root, size_t depth);
// Returns the largest depth that shows at most `most` nodes; at least 1.
size_t ChooseDepth(const ScopeNode& root, size_t most);

}  // namespace thalweg::cli
