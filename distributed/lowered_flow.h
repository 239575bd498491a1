// LoweredFlow: converts functional branches and loops (If, Case, While) whose functions name
// several tasks to the primitives that partitioning handles (Switch, Merge, Enter, Exit,
// NextIteration), and calls of such functions to their nodes. The primitives are added to the
// client's graph beside the node, under its name, and run in its place, so each node of a body runs
// where it asks to. Threads: one at a time.
#pragma once
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/status.h"
#include "framework/graph/function.h"
#include "framework/graph/graph.h"

namespace thalweg::distributed {

class LoweredFlow {
 public:
  explicit LoweredFlow(Graph* graph) : graph_(graph) {}
  // Lowers the node if it is a branch or loop that must become primitives. Returns true if it was
  // lowered now.
  StatusOr<bool> Lower(const Node& n);
  // Returns true if Lower converts, or has converted, the node: its own placement then does not
  // matter.
  bool Takes(const Node& n);
  bool Has(const Node* n) const { return done_.count(n) != 0; }
  // REQUIRES: Has(e.node). Returns the edge that replaces the output.
  Edge Out(const Edge& e) const { return outs_.at({e.node, e.port}); }
  // REQUIRES: Has(n). Returns a node that ends when all of n has ended.
  const Node* Done(const Node* n) const { return done_.at(n); }

 private:
  // The destination of a function's nodes.
  struct Place {
    const Node* node = nullptr;   // the node that calls it
    std::string prefix;           // of the new names
    std::vector<Edge> args;       // edges that replace its arguments
    const Node* pivot = nullptr;  // nodes without inputs wait for it, so that they run with the others
    bool loops = false;           // it runs in every iteration of a loop
  };
  struct Copies {
    std::vector<Edge> results;
    std::vector<const Node*> targets;
  };
  bool Asks(const std::string& function, const std::string& task);
  StatusOr<bool> Spans(const Node& n);
  StatusOr<Copies> Copy(const Function& f, const Place& place);
  Status LowerBranches(const Node& n);
  Status LowerWhile(const Node& n);
  Status LowerCall(const Node& n);
  StatusOr<const Node*> Add(const Node& like, std::string_view role, const std::string& name, std::vector<Edge> inputs,
                            std::vector<const Node*> controls = {});
  StatusOr<const Node*> AddEnter(const Node& n, const std::string& name, const Edge& value, bool invariant);
  StatusOr<const Node*> AddLoopConst(const Node& of, const Place& place, NodeSpec spec);
  StatusOr<Edge> Truth(const Node& n, const std::string& name, const Edge& pred);
  StatusOr<Edge> IsNot(const Node& n, const std::string& name, const Edge& index, int32_t k);
  Status Finish(const Node& n, const std::vector<Edge>& outs, const std::vector<const Node*>& targets);

  Graph* const graph_;
  std::map<std::string, std::set<std::string>> asked_;  // tasks by function
  std::map<std::pair<const Node*, int32_t>, Edge> outs_;
  std::map<const Node*, const Node*> done_;
};

}  // namespace thalweg::distributed
