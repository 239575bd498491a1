// FormBuilder: the common part of the functional forms of branches and loops (functional_form.h):
// selects the nodes of a body and copies them.
// Threads: one at a time per graph.
#pragma once
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/autodiff/flow_structure.h"
#include "framework/base/status.h"
#include "framework/graph/copy_nodes.h"
#include "framework/graph/function.h"
#include "framework/graph/graph.h"

namespace thalweg {

struct NodeLess {
  bool operator()(const Node* a, const Node* b) const { return a->id() < b->id(); }
};
using NodeSet = std::set<const Node*, NodeLess>;

// The nodes that a body is copied from.
struct FormInside {
  NodeSet nodes;
  std::vector<std::pair<Edge, Edge>> passed;  // outputs of the Switches that lead into it, and the inputs that they forward
  std::vector<Edge> outside;                  // values that it takes from outside
  NodeSet before;                             // nodes outside that it waits for
  bool stateful() const;
};

// A function under construction: a graph with a placeholder for each argument.
struct FormBody {
  std::shared_ptr<Graph> graph;
  std::vector<Edge> args;
  Copied copied;
};

// Adds the edge unless it is there already.
void AddOnce(const Edge& e, std::vector<Edge>* to);

// The error for a node that keeps a graph from having a form.
Status Unstructured(const Node& n, std::string_view why);

class FormBuilder {
 public:
  // hidden: the functions are invisible to the program.
  explicit FormBuilder(Graph* graph, bool hidden = false) : graph_(graph), flow_(*graph), library_(graph->functions()), hidden_(hidden) {}
  Graph* graph() const { return graph_; }
  const FlowStructure& flow() const { return flow_; }
  bool has_library() const { return library_ != nullptr; }

  // Collects the nodes that the values and controls need within the place. loop: the loop whose
  // body or condition is copied; the caller binds its variables and invariants. NULL for a branch.
  StatusOr<FormInside> Collect(const std::vector<Edge>& values, const std::vector<const Node*>& controls, const FlowPlace& place,
                               const FlowLoop* loop) const;
  // Adds a placeholder of the value's type, with the given shape.
  StatusOr<Edge> AddArgument(Graph* g, const Edge& like, const Shape& shape) const;
  // REQUIRES: body->copied has replacements of the values that the nodes take from outside.
  Status Copy(const FormInside& in, FormBody* body) const;
  StatusOr<std::string> AddFunction(const std::string& name, const FormBody& body, std::vector<Edge> results,
                                    const std::vector<const Node*>& controls) const;
  StatusOr<const Node*> AddForm(std::string_view role, bool is_stateful, const Node& like, std::vector<Edge> in, const NodeSet& before,
                                std::map<std::string, AttrValue> attrs, std::string name) const;
  // Checks that no input of a form depends on the nodes that the form replaces; otherwise they are
  // not a single If or While.
  Status WantNoCycle(const std::vector<Edge>& in, const NodeSet& before, const std::vector<const Node*>& replaced) const;

 private:
  bool IsRegionSwitch(const Node& n, const FlowPlace& place) const;

  Graph* const graph_;
  const FlowStructure flow_;
  const std::shared_ptr<FunctionLibrary> library_;
  const bool hidden_;
};

// Makes the If of the Merge: for all merges that its condition decides, or, if these cannot be one
// If, for this Merge and the merges that share nodes with it.
Status FormBranches(const FormBuilder& b, const Node& merge);
// Makes the While of the Exit.
Status FormLoop(const FormBuilder& b, const Node& exit);

}  // namespace thalweg
