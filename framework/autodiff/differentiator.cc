#include "framework/autodiff/differentiator.h"

#include <algorithm>

#include "framework/autodiff/call_gradient.h"
#include "framework/autodiff/functional_form.h"
#include "framework/autodiff/grad_builder.h"
#include "framework/autodiff/gradient_nodes.h"
#include "framework/autodiff/stored_gradient.h"
#include "framework/base/dtype.h"
#include "framework/base/shown.h"
#include "framework/graph/function_shapes.h"

namespace thalweg {

// Checks the type, and unless sparse the shape, of the gradient given for y.
static Status CheckArriving(const Edge& y, const Gradient& dy) {
  const uint32_t type = BaseType(y.node->out_type(y.port));
  const Edge& values = dy.values;
  if (const uint32_t given = BaseType(values.node->out_type(values.port)); given != type) {
    return InvalidArgument("the gradient given for '", Shown(y.text()), "' is ", DTypeName(given), ", not ", DTypeName(type));
  }
  if (!dy.sparse() && !values.node->shape(values.port).Admits(y.node->shape(y.port))) {
    return InvalidArgument("the gradient given for '", Shown(y.text()), "' has shape ", values.node->shape(values.port).text(), ", not ",
                           y.node->shape(y.port).text());
  }
  return Status();
}

Status Differentiator::Run(const std::vector<Edge>& ys, const std::vector<Gradient>& dys, const std::vector<Edge>& xs,
                           const std::vector<Edge>& stop, std::vector<Gradient>* out) {
  for (const Edge& e : stop) stop_.insert(e);
  MarkBetween(ys, xs);
  for (size_t i = 0; i < ys.size(); ++i) {
    Gradient dy;
    if (!dys.empty() && dys[i].values) {
      dy = dys[i];
      RETURN_IF_ERROR(CheckArriving(ys[i], dy));
    } else {
      ASSIGN_OR_RETURN(dy.values, AddRole(graph_, "ones_like", {ys[i]}, {}, scope_));
    }
    if (dy.sparse()) {
      arriving_[ys[i]].sparse.push_back(dy);
    } else {
      arriving_[ys[i]].dense.push_back(dy.values);
    }
  }
  // Every reader is visited before its producer.
  for (size_t i = order_.size(); i-- > 0;) {
    if (between_.count(order_[i])) RETURN_IF_ERROR(Visit(order_[i]));
  }
  for (const Edge& x : xs) {
    if (auto it = blocked_.find(x); it != blocked_.end()) return it->second;
    ASSIGN_OR_RETURN(Gradient g, Collect(x, true));
    out->push_back(g);
  }
  return Status();
}

void Differentiator::Add(Edge x, Gradient g) {
  x = FormOf(*graph_, x);
  // Unneeded gradients are not collected.
  if (!useful_.count(x)) return;
  if (!visiting_.ok()) blocked_.emplace(x, visiting_);
  if (g.sparse()) {
    arriving_[x].sparse.push_back(g);
  } else {
    arriving_[x].dense.push_back(g.values);
  }
}

StatusOr<Gradient> Differentiator::Collect(Edge e, bool may_be_sparse) {
  auto it = arriving_.find(e);
  if (it == arriving_.end() || !it->second.any()) return Gradient{};
  Arriving& a = it->second;
  std::string scope = ScopeOf(*e.node);
  if (a.sparse.size() > 1) {
    std::vector<Edge> rows, values;
    for (const Gradient& g : a.sparse) {
      rows.push_back(g.rows);
      values.push_back(g.values);
    }
    Gradient sum;
    ASSIGN_OR_RETURN(sum.rows, ConcatRows(std::move(rows), scope));
    ASSIGN_OR_RETURN(sum.values, ConcatRows(std::move(values), scope));
    a.sparse = {sum};
  }
  if (!a.sparse.empty() && (!a.dense.empty() || !may_be_sparse)) {
    ASSIGN_OR_RETURN(Edge dense, Densify(graph_, a.sparse[0], e, scope));
    a.sparse.clear();
    a.dense.push_back(dense);
  }
  if (a.dense.size() > 1) {
    ASSIGN_OR_RETURN(Edge sum, AddRole(graph_, "add_n", a.dense, {}, scope, e.node->device()));
    a.dense = {sum};
  }
  if (!a.sparse.empty()) return a.sparse[0];
  return Gradient{a.dense[0], {}};
}

StatusOr<Edge> Differentiator::ConcatRows(std::vector<Edge> parts, const std::string& scope) {
  uint32_t type = parts[0].node->out_type(parts[0].port);
  for (Edge& p : parts) {
    if (p.node->out_type(p.port) == type) continue;
    // Row indices of int32 and int64 are combined as int64.
    ASSIGN_OR_RETURN(p, AddRole(graph_, "cast", {p}, {{"DstT", AttrValue::Type(TW_INT64)}}, scope));
    if (type != TW_INT64) {
      for (Edge& q : parts) {
        if (q.node->out_type(q.port) == TW_INT64) continue;
        ASSIGN_OR_RETURN(q, AddRole(graph_, "cast", {q}, {{"DstT", AttrValue::Type(TW_INT64)}}, scope));
      }
      type = TW_INT64;
    }
  }
  ASSIGN_OR_RETURN(Tensor zero, ScalarTensor(TW_INT32, 0));
  ASSIGN_OR_RETURN(Edge axis, graph_->AddConst(zero, graph_->UniqueName(scope + "axis"), parts[0].node->place()));
  int64_t n = int64_t(parts.size());
  parts.push_back(axis);
  return AddRole(graph_, "concat", std::move(parts), {{"N", AttrValue::Int(n)}}, scope);
}

void Differentiator::MarkBetween(const std::vector<Edge>& ys, const std::vector<Edge>& xs) {
  std::set<Edge, EdgeLess> x_set(xs.begin(), xs.end());
  // Backwards from ys.
  std::unordered_set<const Node*> below;
  std::vector<const Node*> todo;
  for (const Edge& y : ys) todo.push_back(y.node);
  while (!todo.empty()) {
    const Node* n = todo.back();
    todo.pop_back();
    if (!below.insert(n).second) continue;
    for (const Edge& in : n->inputs()) todo.push_back(FormOf(*graph_, in).node);
  }
  // Ids are a topological order (a node's inputs exist before it), except that forms have larger
  // ids than their readers.
  order_.assign(below.begin(), below.end());
  std::sort(order_.begin(), order_.end(), [](const Node* a, const Node* b) { return a->id() < b->id(); });
  if (graph_->has_replaced()) SortByInputs();
  // Forwards: a node is between if it reads a useful value.
  for (const Node* n : order_) {
    bool reads = false;
    for (const Edge& in : n->inputs()) reads = reads || useful_.count(FormOf(*graph_, in));
    if (reads) between_.insert(n);
    for (int32_t o = 0; o < n->n_out(); ++o) {
      Edge e{n, o};
      if (x_set.count(e) || (reads && HasGradients(n->out_type(o)) && !stop_.count(e))) useful_.insert(e);
    }
  }
}

void Differentiator::SortByInputs() {
  std::vector<const Node*> sorted, todo;
  std::unordered_set<const Node*> done;
  for (const Node* first : order_) {
    todo.push_back(first);
    while (!todo.empty()) {
      const Node* n = todo.back();
      const size_t before = todo.size();
      for (const Edge& in : n->inputs()) {
        if (const Node* of = FormOf(*graph_, in).node; !done.count(of)) todo.push_back(of);
      }
      if (todo.size() > before) continue;
      todo.pop_back();
      if (done.insert(n).second) sorted.push_back(n);
    }
  }
  order_ = std::move(sorted);
}

Status Differentiator::Visit(const Node* n) {
  bool any = false;
  for (int32_t o = 0; o < n->n_out(); ++o) any = any || Has({n, o});
  if (!any) return Status();
  const OpSchema& op = n->op();
  visiting_ = Status();
  for (int32_t o = 0; o < n->n_out(); ++o) {
    if (auto it = blocked_.find({n, o}); it != blocked_.end() && visiting_.ok()) visiting_ = it->second;
  }
  ASSIGN_OR_RETURN(const std::string named, NamedGradient(*n));
  if (!named.empty()) return VisitNamed(n, named);
  if (CallsFunctions(op)) return VisitCall(n);
  return VisitOp(n, op);
}

Status Differentiator::VisitOp(const Node* n, const OpSchema& op) {
  if (!op.def.gradient) {
    if (visiting_.ok() && !op.no_gradient.empty()) {
      visiting_ = FailedPrecondition(n->title(), ": op ", op.name, " is not differentiable: ", op.no_gradient,
                                     "; stop the gradient before it (StopGradient) or use another op");
    } else if (visiting_.ok()) {
      visiting_ = Unimplemented(n->title(), ": op ", op.name, " has no gradient; its plugin '", op.plugin, "' must register one");
    }
    visiting_ = OfNode(*n, visiting_);
    return Block(n);
  }
  GradBuilder b(this, n, ScopeOf(*n));
  CAttrs attrs;
  n->FillC(&attrs);
  std::vector<tw_shape> shapes;
  std::vector<const tw_view*> values;
  for (const Edge& in : n->inputs()) {
    shapes.push_back(in.node->shape(in.port).c());
    const Tensor& v = in.node->value(in.port);
    values.push_back(v ? &v.view() : nullptr);
  }
  for (int32_t o = 0; o < n->n_out(); ++o) shapes.push_back(n->shape(o).c());
  tw_grad_call call{};
  call.size = sizeof call;
  call.host = op.host;
  call.user = op.def.user;
  call.node = n->name().data();
  call.node_len = n->name().size();
  call.attrs = attrs.data();
  call.shapes = shapes.data();
  call.types = n->types().data();
  call.value = values.data();
  call.in_at = n->in_at().data();
  call.n_attrs = attrs.size();
  call.n_in = uint32_t(n->n_in());
  call.n_out = uint32_t(n->n_out());
  call.b = &b;
  Status s = FromC(op.def.gradient(&call));
  if (!b.status.ok()) s = b.status;
  if (!s.ok() && !visiting_.ok()) return visiting_;
  return s.ok() ? s : OfNode(*n, Prefix(s, StrCat("gradient of ", n->title(), ":")));
}

NodeGradient Differentiator::GradientOf(const Node* n) {
  NodeGradient g;
  g.keeping = keeping_;
  g.has_dy = [this, n](int32_t o) { return Has({n, o}); };
  g.dy = [this, n](int32_t o) -> StatusOr<Edge> {
    if (!Has({n, o})) return AddRole(graph_, "zeros_like", {{n, o}}, {}, ScopeOf(*n));
    ASSIGN_OR_RETURN(const Gradient sum, Collect({n, o}, false));
    return sum.values;
  };
  g.wants_dx = [this, n](int32_t i) { return i < n->n_in() && useful_.count(FormOf(*graph_, n->inputs()[size_t(i)])) > 0; };
  g.dx = [this, n](int32_t i, Edge values) {
    if (i < n->n_in()) Add(n->inputs()[size_t(i)], {values, {}});
  };
  return g;
}

Status Differentiator::VisitCall(const Node* n) {
  Status s = AddFunctionGradient(graph_, *n, ScopeOf(*n), GradientOf(n));
  return s.ok() ? s : OfNode(*n, Prefix(s, StrCat("gradient of ", n->title(), ":")));
}

Status Differentiator::VisitNamed(const Node* n, const std::string& name) {
  const auto library = graph_->functions();
  if (const auto stored = library ? library->GradientOf(name) : std::nullopt) {
    const NodeGradient g = GradientOf(n);
    CallGradient c(graph_, *n, ScopeOf(*n), g);
    Status s = c.Open();
    if (s.ok()) s = AddStoredGradient(c, *stored);
    return s.ok() ? s : OfNode(*n, Prefix(s, StrCat("gradient of ", n->title(), ":")));
  }
  const OpSchema* op = graph_->host().FindOp(name);
  if (op && op->inputs.size() == n->op().inputs.size() && op->outputs.size() == n->op().outputs.size()) return VisitOp(n, *op);
  if (visiting_.ok()) {
    visiting_ =
        OfNode(*n, FailedPrecondition(n->title(), ": its gradient is '", Shown(name), "', as its attribute '_gradient_op_type' says",
                                      ", but neither the graph's function library nor a plugin has that; write the graph with its ",
                                      "custom gradients, or stop the gradient before the node"));
  }
  return Block(n);
}

Status Differentiator::Block(const Node* n) {
  for (const Edge& in : n->inputs()) {
    if (!useful_.count(FormOf(*graph_, in))) continue;
    uint32_t type = BaseType(in.node->out_type(in.port));
    if (type == TW_RESOURCE || type == TW_VARIANT) return visiting_;
    ASSIGN_OR_RETURN(Edge zeros, AddRole(graph_, "zeros_like", {in}, {}, ScopeOf(*n)));
    Add(in, {zeros, {}});
  }
  return Status();
}

}  // namespace thalweg
