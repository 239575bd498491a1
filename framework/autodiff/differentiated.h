// Differentiated: a function under differentiation: its body in a graph of its own, with the nodes
// that compute its gradient. Threads: one.
#pragma once
#include <cstdint>
#include <memory>
#include <unordered_set>
#include <vector>

#include "framework/autodiff/autodiff.h"
#include "framework/base/status.h"
#include "framework/graph/copy_nodes.h"
#include "framework/graph/function.h"

namespace thalweg {

using Mask = std::vector<uint8_t>;

class Differentiated {
 public:
  // has_dy: per result, whether a gradient arrives there.   wants_dx: per argument, whether its
  // gradient is wanted.
  // keeping: with `recompute`, the backward part computes values again, if possible, instead of
  // capturing them.   f: kept alive by this object.
  // Errors: UNIMPLEMENTED for a function that calls itself; those of AddGradients in its body.
  static StatusOr<Differentiated> Make(std::shared_ptr<const Function> f, const Mask& has_dy, const Mask& wants_dx, const Keeping& keeping);

  const Function& function() const { return *f_; }
  Graph& graph() const { return *graph_; }
  const std::shared_ptr<Graph>& shared_graph() const { return graph_; }
  const std::vector<Edge>& args() const { return args_; }
  const std::vector<Edge>& results() const { return results_; }
  const std::vector<const Node*>& targets() const { return targets_; }
  const std::vector<Edge>& dys() const { return dys_; }              // per result; empty if no gradient arrives
  const std::vector<Edge>& dxs() const { return dxs_; }              // per argument; empty if it has no gradient
  const std::vector<Edge>& captures() const { return captures_; }    // values of the forward part that are neither arguments nor known
  const std::vector<Edge>& used_args() const { return used_args_; }  // arguments that the backward part reads

  // Copies the backward part. REQUIRES: *copied has replacements of the arguments, captures and
  // dys.
  Status CopyBackward(Graph* to, Copied* copied) const;

 private:
  explicit Differentiated(std::shared_ptr<const Function> f) : f_(std::move(f)), graph_(Graph::Body(f_->body())) {}
  Status Build(const Mask& has_dy, const Mask& wants_dx, const Keeping& keeping);
  std::unordered_set<const Node*> Forward(int32_t n_forward, bool recompute) const;
  void Split(const std::unordered_set<const Node*>& forward);
  void Capture(const Edge& e, const std::unordered_set<const Node*>& forward);

  std::shared_ptr<const Function> f_;
  std::shared_ptr<Graph> graph_;
  std::vector<Edge> args_, results_, dys_, dxs_, captures_, used_args_;
  std::vector<const Node*> targets_, backward_;
};

// The arguments that each result of a function depends on: a row per result.
std::vector<Mask> Dependencies(const Function& f);

}  // namespace thalweg
