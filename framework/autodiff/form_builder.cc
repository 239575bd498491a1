#include "framework/autodiff/form_builder.h"

#include <algorithm>
#include <unordered_set>

#include "framework/base/dtype.h"
#include "framework/base/shown.h"
#include "framework/graph/flow.h"

namespace thalweg {
namespace {

// Returns true for a node that a loop's body takes as argument: a variable, or an invariant.
bool IsVariable(const FlowLoop& loop, const Node& n) {
  if (FlowOf(n.op()) == Flow::kMerge) return std::find(loop.merges.begin(), loop.merges.end(), &n) != loop.merges.end();
  return FlowOf(n.op()) == Flow::kEnter && std::find(loop.enters.begin(), loop.enters.end(), &n) != loop.enters.end();
}

Status WantVariable(const Edge& e) {
  if (FlowOf(e.node->op()) == Flow::kMerge) return e.port == 0 ? Status() : Unstructured(*e.node, "its output 'value_index' is used");
  return e.node->FindAttr("is_constant")->bools()[0] ? Status() : Unstructured(*e.node, "it is used in the first iteration only");
}

// Returns true for a Switch of the loop whose body is copied: its LoopCond is not in the body.
bool IsDropped(const Node& n, const FormInside& in) { return in.nodes.count(n.inputs()[1].node) == 0; }

}  // namespace

void AddOnce(const Edge& e, std::vector<Edge>* to) {
  if (std::find(to->begin(), to->end(), e) == to->end()) to->push_back(e);
}

bool FormInside::stateful() const {
  return std::any_of(nodes.begin(), nodes.end(), [](const Node* n) { return n->op().stateful; });
}

Status Unstructured(const Node& n, std::string_view why) {
  return OfNode(n, Unimplemented(n.title(), ": ", why, ", so it cannot be turned into the While or If that gradients are made of; ",
                                 "build it with While or If"));
}

StatusOr<FormInside> FormBuilder::Collect(const std::vector<Edge>& values, const std::vector<const Node*>& controls, const FlowPlace& place,
                                          const FlowLoop* loop) const {
  FormInside in;
  std::vector<const Node*> todo;
  const auto want = [&](const Edge& e) -> Status {
    ASSIGN_OR_RETURN(const FlowPlace of, flow_.Of(e));
    const Flow flow = FlowOf(e.node->op());
    if (loop && IsVariable(*loop, *e.node)) return WantVariable(e);
    if (loop && flow == Flow::kSwitch && FlowStructure::IsOfLoop(*e.node) && of.frame == place.frame) {
      if (e.port == 0) return Unstructured(*e.node, "what leaves its loop is used in it");
      if (in.nodes.insert(e.node).second) todo.push_back(e.node);
      return Status();
    }
    if (!loop && flow == Flow::kSwitch && of == place) {
      if (std::find(in.passed.begin(), in.passed.end(), std::pair(e, e.node->inputs()[0])) == in.passed.end()) {
        in.passed.emplace_back(e, e.node->inputs()[0]);
        AddOnce(e.node->inputs()[0], &in.outside);
        in.before.insert(e.node->controls().begin(), e.node->controls().end());
      }
      return Status();
    }
    if (!flow_.Within(of, place)) {
      if (loop) return Unstructured(*e.node, "it is used in a loop that it lies outside of");
      AddOnce(e, &in.outside);
    } else if (in.nodes.insert(e.node).second) {
      todo.push_back(e.node);
    }
    return Status();
  };
  const auto wait = [&](const Node* c) -> Status {
    ASSIGN_OR_RETURN(const FlowPlace at, flow_.At(*c));
    if (loop && IsVariable(*loop, *c)) return Status();
    const bool inside = flow_.Within(at, place);
    if (!inside && !loop && !IsRegionSwitch(*c, place)) in.before.insert(c);
    if (inside && in.nodes.insert(c).second) todo.push_back(c);
    return Status();
  };
  for (const Edge& e : values) RETURN_IF_ERROR(want(e));
  for (const Node* c : controls) RETURN_IF_ERROR(wait(c));
  while (!todo.empty()) {
    const Node& n = *todo.back();
    todo.pop_back();
    const bool passes = loop && FlowStructure::IsOfLoop(n) && flow_.At(n)->frame == place.frame;
    for (size_t i = 0; i < (passes ? 1 : n.inputs().size()); ++i) {
      RETURN_IF_ERROR(want(n.inputs()[i]));
      if (const Node* back = n.back(int32_t(i))) RETURN_IF_ERROR(want({back, 0}));
    }
    for (const Node* c : n.controls()) RETURN_IF_ERROR(wait(c));
  }
  return in;
}

bool FormBuilder::IsRegionSwitch(const Node& n, const FlowPlace& place) const {
  if (FlowOf(n.op()) != Flow::kSwitch || place.branch.region < 0) return false;
  const auto of = flow_.Of({&n, 0});
  return of.ok() && of->branch.region == place.branch.region;
}

StatusOr<Edge> FormBuilder::AddArgument(Graph* g, const Edge& like, const Shape& shape) const {
  ASSIGN_OR_RETURN(const OpSchema* op, g->host().FindRole("placeholder"));
  NodeSpec spec;
  spec.op = op->name;
  spec.name = g->UniqueName(like.node->name());
  spec.attrs["dtype"] = AttrValue::Type(BaseType(like.node->out_type(like.port)));
  spec.attrs["shape"] = AttrValue::OfShape(shape);
  spec.handle = like.node->handle(like.port);
  spec.place = like.node->place();
  ASSIGN_OR_RETURN(const Node* n, g->AddNode(std::move(spec)));
  return Edge{n, 0};
}

Status FormBuilder::Copy(const FormInside& in, FormBody* body) const {
  for (const Node* n : in.nodes) {
    if (body->copied.Find(n)) continue;
    if (FlowStructure::IsOfLoop(*n) && body->copied.Find(n->inputs()[0]) && IsDropped(*n, in)) {
      body->copied.Put(Edge{n, 1}, body->copied.Find(n->inputs()[0]));
      continue;
    }
    RETURN_IF_ERROR(CopyNode(*n, body->graph.get(), &body->copied).status());
  }
  for (const Node* n : in.nodes) {
    for (int32_t i = 0; i < n->n_in(); ++i) {
      const Node* next = n->back(i);
      if (next) RETURN_IF_ERROR(body->graph->CloseLoop(body->copied.Find(n), i, body->copied.Find(next)));
    }
  }
  return Status();
}

StatusOr<std::string> FormBuilder::AddFunction(const std::string& name, const FormBody& body, std::vector<Edge> results,
                                               const std::vector<const Node*>& controls) const {
  FunctionSpec spec;
  spec.name = library_->UniqueName(hidden_ ? StrCat("_hidden/", name) : name);  // which leaves the plain names to the program
  spec.body = body.graph;
  spec.args = body.args;
  spec.results = std::move(results);
  for (const Node* c : controls) {
    if (const Node* mine = body.copied.Find(c)) spec.targets.push_back(mine);
  }
  ASSIGN_OR_RETURN(auto f, Function::Make(std::move(spec)));
  RETURN_IF_ERROR(hidden_ ? library_->AddHidden(f) : library_->Add(f));
  return f->name();
}

StatusOr<const Node*> FormBuilder::AddForm(std::string_view role, bool is_stateful, const Node& like, std::vector<Edge> in,
                                           const NodeSet& before, std::map<std::string, AttrValue> attrs, std::string name) const {
  ASSIGN_OR_RETURN(const OpSchema* op, graph_->host().FindRole(is_stateful ? std::string(role) : StrCat("stateless_", role)));
  NodeSpec spec;
  spec.op = op->name;
  spec.name = std::move(name);
  spec.inputs = std::move(in);
  spec.controls.assign(before.begin(), before.end());
  spec.attrs = std::move(attrs);
  spec.place = like.place();
  spec.imported = like.imported();
  return graph_->AddNode(std::move(spec));
}

Status FormBuilder::WantNoCycle(const std::vector<Edge>& in, const NodeSet& before, const std::vector<const Node*>& replaced) const {
  std::vector<const Node*> todo(before.begin(), before.end());
  for (const Edge& e : in) todo.push_back(e.node);
  std::unordered_set<const Node*> seen;
  while (!todo.empty()) {
    const Node* n = todo.back();
    todo.pop_back();
    if (!seen.insert(n).second) continue;
    if (std::find(replaced.begin(), replaced.end(), n) != replaced.end()) {
      return Unstructured(*n, "it is needed by what decides it, or by what enters the same branch or loop");
    }
    const Edge form = graph_->ReplacedBy({n, 0});
    const Node& from = form ? *form.node : *n;
    for (const Edge& e : from.inputs()) todo.push_back(e.node);
    todo.insert(todo.end(), from.controls().begin(), from.controls().end());
  }
  return Status();
}

}  // namespace thalweg
