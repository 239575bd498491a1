// Differentiator: walks from the ys back to the xs (autodiff.h), collects the gradients that arrive
// at each value, and passes them on through the gradients of the ops.
// Threads: one at a time per graph.
#pragma once
#include <map>
#include <set>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "framework/autodiff/autodiff.h"
#include "framework/autodiff/function_gradient.h"
#include "framework/base/status.h"
#include "framework/base/strings.h"
#include "framework/graph/graph.h"

namespace thalweg {

class Differentiator {
 public:
  // scope: names of added nodes begin with it. flat: the name of the op follows, else the name of the
  // node whose gradient it is, and the op's.
  Differentiator(Graph* g, std::string scope, bool flat, const Keeping& keeping)
      : graph_(g), scope_(std::move(scope)), flat_(flat), keeping_(keeping) {}

  // REQUIRES: ys, xs and stop were mapped by FormOf.
  Status Run(const std::vector<Edge>& ys, const std::vector<Gradient>& dys, const std::vector<Edge>& xs, const std::vector<Edge>& stop,
             std::vector<Gradient>* out);
  Graph* graph() { return graph_; }
  // Returns true if the nodes of gradients are to recompute what they read, as far as memory gains.
  bool recomputes() const { return keeping_.recompute && !keeping_.inside; }
  // Returns true if a gradient flows back through e; false if e is in `stop`.
  bool Has(Edge e) const {
    auto it = arriving_.find(e);
    return it != arriving_.end() && it->second.any() && !stop_.count(e);
  }
  // Adds gradient g at x, unless it is not needed there.
  void Add(Edge x, Gradient g);
  // Returns the sum of the gradients at e; empty values if there are none. may_be_sparse false:
  // converts it to dense.
  StatusOr<Gradient> Collect(Edge e, bool may_be_sparse);

 private:
  // All gradients that arrive at one value.
  struct Arriving {
    std::vector<Edge> dense;
    std::vector<Gradient> sparse;
    bool any() const { return !dense.empty() || !sparse.empty(); }
  };

  struct EdgeLess {
    bool operator()(const Edge& a, const Edge& b) const { return a.node != b.node ? a.node->id() < b.node->id() : a.port < b.port; }
  };

  StatusOr<Edge> ConcatRows(std::vector<Edge> parts, const std::string& scope);
  // Sets between_, the nodes on a path from an x to a y, and useful_, the values on such paths.
  void MarkBetween(const std::vector<Edge>& ys, const std::vector<Edge>& xs);
  // Sorts order_ so that each node comes after its inputs, otherwise unchanged.
  void SortByInputs();
  Status Visit(const Node* n);
  // op: whose gradient builder is used.
  Status VisitOp(const Node* n, const OpSchema& op);
  NodeGradient GradientOf(const Node* n);
  Status VisitCall(const Node* n);
  // Visits a node that names its gradient: a function of the graph's library, or another op's
  // gradient.
  Status VisitNamed(const Node* n, const std::string& name);
  // Node n cannot be differentiated. That is an error only if an x lies before it and no node in
  // between ends the path. So its inputs get a zero gradient that remembers the reason.
  Status Block(const Node* n);

  // Returns the prefix of the names of the nodes for the gradient of `n`.
  std::string ScopeOf(const Node& n) const { return flat_ ? scope_ : StrCat(scope_, n.name(), "/"); }

  Graph* graph_;
  std::string scope_;
  const bool flat_;
  const Keeping keeping_;
  std::map<Edge, Arriving, EdgeLess> arriving_;
  std::set<Edge, EdgeLess> useful_, stop_;
  std::map<Edge, Status, EdgeLess> blocked_;  // values whose gradient passed through a node that is not differentiable, with the reason
  Status visiting_;                           // the same for the visited node
  std::unordered_set<const Node*> between_;
  std::vector<const Node*> order_;  // nodes that ys need, each after its inputs
};

}  // namespace thalweg
