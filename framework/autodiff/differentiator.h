// The walk from the ys back to the xs (autodiff.h): what arrives at each value is collected, and passed on by the gradients of the ops.
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
#include "framework/graph/graph.h"

namespace thalweg {

class Differentiator {
 public:
  Differentiator(Graph* g, std::string scope, const Keeping& keeping) : graph_(g), scope_(std::move(scope)), keeping_(keeping) {}

  // REQUIRES: ys, xs and stop are the forms of values.
  Status Run(const std::vector<Edge>& ys, const std::vector<Edge>& dys, const std::vector<Edge>& xs, const std::vector<Edge>& stop,
             std::vector<Gradient>* out);
  Graph* graph() { return graph_; }
  // Something flows back through e; not where e is stopped, whatever arrived there.
  bool Has(Edge e) const {
    auto it = arriving_.find(e);
    return it != arriving_.end() && it->second.any() && !stop_.count(e);
  }
  // g arrives at x, unless nobody asks for that.
  void Add(Edge x, Gradient g);
  // The sum of what arrived at e; empty values if nothing did. may_be_sparse false: made dense.
  StatusOr<Gradient> Collect(Edge e, bool may_be_sparse);

 private:
  // All that arrives at one value.
  struct Arriving {
    std::vector<Edge> dense;
    std::vector<Gradient> sparse;
    bool any() const { return !dense.empty() || !sparse.empty(); }
  };

  struct EdgeLess {
    bool operator()(const Edge& a, const Edge& b) const { return a.node != b.node ? a.node->id() < b.node->id() : a.port < b.port; }
  };

  StatusOr<Edge> ConcatRows(std::vector<Edge> parts, const std::string& scope);
  // between_: nodes on a path from an x to a y; useful_: the values on such paths.
  void MarkBetween(const std::vector<Edge>& ys, const std::vector<Edge>& xs);
  // order_: each node behind those that it reads, otherwise as before.
  void SortByInputs();
  Status Visit(const Node* n);
  // op: whose gradient it is.
  Status VisitOp(const Node* n, const OpSchema& op);
  NodeGradient GradientOf(const Node* n);
  Status VisitCall(const Node* n);
  // A node that names its gradient: a function of the graph's library, or that of another op.
  Status VisitNamed(const Node* n, const std::string& name);
  // Node n cannot be differentiated. That is an error only if an x lies before it with nothing in between that ends the path, so what its
  // inputs get is a zero that remembers why.
  Status Block(const Node* n);

  Graph* graph_;
  std::string scope_;
  const Keeping keeping_;
  std::map<Edge, Arriving, EdgeLess> arriving_;
  std::set<Edge, EdgeLess> useful_, stop_;
  std::map<Edge, Status, EdgeLess> blocked_;  // values whose gradient passed through what cannot be differentiated, and why it cannot
  Status visiting_;                           // the same of the node that is visited
  std::unordered_set<const Node*> between_;
  std::vector<const Node*> order_;  // nodes that ys need, each behind those that it reads
};

}  // namespace thalweg
