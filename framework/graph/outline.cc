#include "framework/graph/outline.h"

#include <algorithm>
#include <set>
#include <utility>

#include "framework/base/dtype.h"
#include "framework/base/shown.h"
#include "framework/graph/copy_nodes.h"
#include "framework/graph/flow.h"
#include "framework/graph/function.h"

namespace thalweg {
namespace {

struct ById {
  bool operator()(const Node* a, const Node* b) const { return a->id() < b->id(); }
};
using Nodes = std::set<const Node*, ById>;

// Adds the nodes and everything that they need, except the nodes of `but` and what only those need.
void AddNeeded(std::vector<const Node*> todo, const Nodes& but, Nodes* to) {
  while (!todo.empty()) {
    const Node* n = todo.back();
    todo.pop_back();
    if (but.count(n) || !to->insert(n).second) continue;
    for (const Edge& e : n->inputs()) todo.push_back(e.node);
    todo.insert(todo.end(), n->controls().begin(), n->controls().end());
  }
}

class Outliner {
 public:
  Outliner(Graph* graph, const PartSpec& part) : graph_(graph), part_(part), body_(Graph::Body(*graph)) {}

  StatusOr<const Node*> Run() {
    const auto library = graph_->functions();
    if (!library) return FailedPrecondition("the graph is a body whose outer graph is gone");
    for (const Edge& e : part_.args) RETURN_IF_ERROR(Take(e).status());
    RETURN_IF_ERROR(Divide());
    for (const Node* n : inside_) RETURN_IF_ERROR(Copy(*n));
    FunctionSpec spec;
    for (const Edge& e : part_.results) {
      ASSIGN_OR_RETURN(spec.results.emplace_back(), InBody(e));
    }
    for (const Node* t : part_.targets) spec.targets.push_back(copied_.Find(t));
    spec.name = part_.name;
    spec.body = body_;
    for (const Edge& e : given_) spec.args.push_back(copied_.Find(e));
    const bool stateful = IsAny([](const Node* n) { return n->op().stateful; });
    ASSIGN_OR_RETURN(const OpSchema* op, graph_->host().FindRole(stateful ? "call" : "stateless_call"));
    ASSIGN_OR_RETURN(auto function, Function::Make(std::move(spec)));
    RETURN_IF_ERROR(library->Add(function));
    return AddCall(*op, *function);
  }

 private:
  // Divides the needed nodes into those before the call and those in the function. Nodes that run
  // once per session stay outside, because a function runs with each call.
  Status Divide() {
    std::vector<const Node*> first, last(part_.targets);
    for (const Edge& e : given_) first.push_back(e.node);
    for (const Edge& e : part_.results) last.push_back(e.node);
    AddNeeded(first, {}, &before_);
    Nodes all;
    AddNeeded(last, before_, &all);
    first.clear();
    std::copy_if(all.begin(), all.end(), std::back_inserter(first), [](const Node* n) { return n->op().once; });
    AddNeeded(first, {}, &before_);
    AddNeeded(last, before_, &inside_);
    for (const Node* t : part_.targets) {
      if (!inside_.count(t))
        return OfNode(*t, InvalidArgument(t->title(), ": it is over before the arguments are there, so it cannot be a target"));
    }
    return Status();
  }

  // Makes the value an argument.
  StatusOr<Edge> Take(const Edge& e) {
    if (IsRef(e.node->out_type(e.port))) {
      return OfNode(*e.node,
                    InvalidArgument(e.node->title(), ": '", Shown(e.text()), "' is a reference, which no function takes; read it before"));
    }
    if (const Edge taken = copied_.Find(e)) return taken;
    ASSIGN_OR_RETURN(const Edge made, body_->AddArgument(e, body_->UniqueName(e.node->name()), e.node->place()));
    copied_.Put(e, made);
    given_.push_back(e);
    return made;
  }

  // Returns the counterpart of a value in the body.
  StatusOr<Edge> InBody(const Edge& e) {
    if (const Edge mine = copied_.Find(e)) return mine;
    const Tensor& known = e.node->value(e.port);
    if (!known) return Take(e);
    ASSIGN_OR_RETURN(const Edge made, body_->AddConst(known, body_->UniqueName(e.node->name()), e.node->place()));
    copied_.Put(e, made);
    return made;
  }

  Status Copy(const Node& n) {
    if (FlowOf(n) != Flow::kNone || n.runs_as()) {
      return OfNode(n, InvalidArgument(n.title(), n.runs_as() ? ": what works on references" : ": what decides what runs",
                                       " cannot be in the part; begin with a value behind it"));
    }
    for (const Edge& e : n.inputs()) RETURN_IF_ERROR(InBody(e).status());
    return CopyNode(n, body_.get(), &copied_).status();
  }

  bool IsAny(bool (*what)(const Node*)) const { return std::any_of(inside_.begin(), inside_.end(), what); }

  StatusOr<const Node*> AddCall(const OpSchema& op, const Function& f) {
    std::vector<uint32_t> types;
    for (const Edge& e : f.results()) types.push_back(e.node->out_type(e.port));
    NodeSpec spec;
    spec.op = op.name;
    spec.name = graph_->UniqueName(f.name());
    spec.inputs = given_;
    spec.attrs = {{"f", AttrValue::Func(f.name())}, {"Tout", AttrValue::Types(std::move(types))}};
    if (!inside_.empty()) spec.place = (*inside_.rbegin())->place();
    spec.imported = IsAny([](const Node* n) { return n->imported(); });
    return graph_->AddNode(std::move(spec));
  }

  Graph* const graph_;
  const PartSpec& part_;
  const std::shared_ptr<Graph> body_;
  std::vector<Edge> given_;  // arguments of the call: values of the graph
  Copied copied_;
  Nodes before_, inside_;
};

}  // namespace

StatusOr<const Node*> Outline(Graph* graph, const PartSpec& part) { return Outliner(graph, part).Run(); }

}  // namespace thalweg
