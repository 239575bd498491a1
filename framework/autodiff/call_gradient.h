// CallGradient: the common part of the gradients of nodes that call functions
// (function_gradient.h): the node, its library, and helpers that add nodes beside it.
// Threads: one at a time per graph.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "framework/autodiff/function_gradient.h"
#include "framework/graph/function.h"

namespace thalweg {

// ---- Nodes with the placement of another ----

// extra: serialised attributes that the op does not declare.
StatusOr<const Node*> AddNodeLike(Graph* g, const OpSchema& op, const std::string& name, std::vector<Edge> in,
                                  std::map<std::string, AttrValue> attrs, const Node& like, std::map<std::string, std::string> extra = {});
StatusOr<const Node*> AddRoleLike(Graph* g, std::string_view role, std::vector<Edge> in, std::map<std::string, AttrValue> attrs,
                                  const Node& like);
StatusOr<Edge> AddScalarLike(Graph* g, int32_t value, const Node& like);
StatusOr<Edge> AddPlaceholderLike(Graph* g, uint32_t type, const Shape& shape, const std::string& name, const Node& like);
// Zeros like a value, or like the variable of a handle.
StatusOr<Edge> ZerosLike(Graph* g, Edge e, const Node& like);
// An empty list.
StatusOr<Edge> AddListLike(Graph* g, uint32_t type, const Node& like);

// ---- Values ----

uint32_t TypeOf(const Edge& e);
std::vector<uint32_t> TypesOf(const std::vector<Edge>& values);
bool IsHandle(const Edge& e);
// Returns false for a handle, whose variable has the gradient.
bool HasOwnGradient(uint32_t type);
bool IsStateful(const Graph& g);

// The node whose gradient is built.
class CallGradient {
 public:
  CallGradient(Graph* graph, const Node& node, std::string scope, const NodeGradient& gradient);
  // Errors: FAILED_PRECONDITION if the graph that has the functions is gone.
  Status Open();

  Graph* graph() const { return graph_; }
  const Node& node() const { return *node_; }
  const std::string& scope() const { return scope_; }
  const NodeGradient& gradient() const { return gradient_; }
  std::string_view role() const { return role_; }
  FunctionLibrary& library() const { return *library_; }
  bool HasDy(int32_t o) const { return o < n_given_ && gradient_.has_dy(o); }
  bool is_given(int32_t o) const { return o < n_given_; }

  StatusOr<std::shared_ptr<const Function>> Find(const std::string& name) const { return library_->Find(name); }
  StatusOr<std::string> AddFunction(const std::string& name, std::shared_ptr<Graph> body, std::vector<Edge> args, std::vector<Edge> results,
                                    std::vector<const Node*> targets = {}) const;
  // Adds a version of the node with more inputs and outputs, which runs in its place.
  StatusOr<const Node*> Extended(std::vector<Edge> more_inputs, std::map<std::string, AttrValue> changed) const;
  // Returns the op that calls functions as the node does, with or without state.
  StatusOr<const OpSchema*> Op(bool is_stateful) const;

 private:
  Graph* const graph_;
  const Node* node_;  // the last node that runs in place of the original one
  const std::string scope_;
  const NodeGradient& gradient_;
  const std::string_view role_;  // without "stateless_"
  std::shared_ptr<FunctionLibrary> library_;
  const int32_t n_given_;  // outputs of the node itself; outputs added by extensions have no gradient here
};

Status AddBranchGradient(const CallGradient& c, const std::vector<std::string>& attrs,
                         int32_t first);  // first: inputs before the arguments
Status AddLoopGradient(const CallGradient& c);

}  // namespace thalweg
