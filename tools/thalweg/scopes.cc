#include "scopes.h"

#include <unordered_map>

namespace thalweg::cli {
namespace {

// Operations first go into a tree of indices, because nested vectors of nodes would move while they
// grow.
struct Building {
  std::string name;
  const tw_operation* op = nullptr;
  std::vector<size_t> children;
};

// Converts node i to its final form; recurses at most kDeepestScope levels.
ScopeNode Finish(std::vector<Building>* all, size_t i) {
  Building& from = (*all)[i];
  ScopeNode node{std::move(from.name), from.op, {}, from.op ? size_t(1) : 0};
  for (const size_t child : from.children) {
    node.children.push_back(Finish(all, child));
    node.operations += node.children.back().operations;
  }
  return node;
}

}  // namespace

ScopeNode ScopesOf(const tw::Graph& graph) {
  std::vector<Building> all(1);
  std::unordered_map<std::string, size_t> scopes = {{"", 0}};  // by name, with the trailing slash
  for (uint32_t i = 0; i < tw_graph_count(graph.c()); ++i) {
    const tw_operation* op = tw_graph_operation(graph.c(), i);
    const std::string name = tw_operation_name(op);
    size_t parent = 0, begin = 0;
    for (size_t depth = 1; depth < kDeepestScope; ++depth) {
      const size_t slash = name.find('/', begin);
      if (slash == name.npos) break;
      const auto [at, made] = scopes.try_emplace(name.substr(0, slash + 1), all.size());
      if (made) {
        all[parent].children.push_back(all.size());
        all.push_back({name.substr(begin, slash - begin), nullptr, {}});
      }
      parent = at->second;
      begin = slash + 1;
    }
    all[parent].children.push_back(all.size());
    all.push_back({name.substr(begin), op, {}});
  }
  return Finish(&all, 0);
}

size_t CountVisible(const ScopeNode& root, size_t depth) {
  size_t count = 0;
  for (const ScopeNode& child : root.children) count += child.op || depth <= 1 ? 1 : 1 + CountVisible(child, depth - 1);
  return count;
}

size_t ChooseDepth(const ScopeNode& root, size_t most) {
  size_t depth = 1;
  for (size_t last = CountVisible(root, 1); depth < kDeepestScope; ++depth) {
    const size_t next = CountVisible(root, depth + 1);
    if (next > most || next == last) break;
    last = next;
  }
  return depth;
}

}  // namespace thalweg::cli
