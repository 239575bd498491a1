// What the functional forms of branches and loops are built with (functional_form.h): which nodes go into a body, and how.
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

// Nodes that a body is copied of.
struct FormInside {
  NodeSet nodes;
  std::vector<std::pair<Edge, Edge>> passed;  // values of the Switches that lead into it, and what they pass on
  std::vector<Edge> outside;                  // values that it takes from outside
  NodeSet before;                             // nodes outside that it waits for
  bool stateful() const;
};

// A function to be: a graph with a placeholder for each value that it takes.
struct FormBody {
  std::shared_ptr<Graph> graph;
  std::vector<Edge> args;
  Copied copied;
};

// Adds what is not there yet.
void AddOnce(const Edge& e, std::vector<Edge>* to);

// The error of a node because of which a graph has no form.
Status Unstructured(const Node& n, std::string_view why);

class FormBuilder {
 public:
  // hidden: the program is to know nothing of the functions.
  explicit FormBuilder(Graph* graph, bool hidden = false) : graph_(graph), flow_(*graph), library_(graph->functions()), hidden_(hidden) {}
  Graph* graph() const { return graph_; }
  const FlowStructure& flow() const { return flow_; }
  bool has_library() const { return library_ != nullptr; }

  // All that the values and nodes need within the place. loop: the body or condition of that loop, whose variables and invariants are
  // bound by whoever asks; NULL: a branch.
  StatusOr<FormInside> Collect(const std::vector<Edge>& values, const std::vector<const Node*>& controls, const FlowPlace& place,
                               const FlowLoop* loop) const;
  // A placeholder for what is like that value, of the shape.
  StatusOr<Edge> AddArgument(Graph* g, const Edge& like, const Shape& shape) const;
  // REQUIRES: body->copied has what stands for what the nodes take from outside.
  Status Copy(const FormInside& in, FormBody* body) const;
  StatusOr<std::string> AddFunction(const std::string& name, const FormBody& body, std::vector<Edge> results,
                                    const std::vector<const Node*>& controls) const;
  StatusOr<const Node*> AddForm(std::string_view role, bool is_stateful, const Node& like, std::vector<Edge> in, const NodeSet& before,
                                std::map<std::string, AttrValue> attrs, std::string name) const;
  // Nothing that a form takes may come of what it replaces: then the two are no single If or While.
  Status WantNoCycle(const std::vector<Edge>& in, const NodeSet& before, const std::vector<const Node*>& replaced) const;

 private:
  bool IsRegionSwitch(const Node& n, const FlowPlace& place) const;

  Graph* const graph_;
  const FlowStructure flow_;
  const std::shared_ptr<FunctionLibrary> library_;
  const bool hidden_;
};

// The Merge's If: of all that its condition decides, or, where that cannot be one, of what this Merge decides.
Status FormBranches(const FormBuilder& b, const Node& merge);
// The Exit's While.
Status FormLoop(const FormBuilder& b, const Node& exit);

}  // namespace thalweg
