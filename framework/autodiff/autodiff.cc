#include "framework/autodiff/autodiff.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "framework/autodiff/function_gradient.h"
#include "framework/autodiff/functional_form.h"
#include "framework/autodiff/stored_gradient.h"
#include "framework/base/dtype.h"
#include "framework/base/shown.h"
#include "framework/graph/builder.h"
#include "framework/graph/function_shapes.h"
#include "framework/runtime/runtime.h"

namespace thalweg {

bool HasGradients(uint32_t dtype) {
  switch (BaseType(dtype)) {
    case TW_FLOAT:
    case TW_DOUBLE:
    case TW_HALF:
    case TW_BFLOAT16:
    case TW_COMPLEX64:
    case TW_COMPLEX128:
    case TW_RESOURCE:  // of the variable behind the handle
    case TW_VARIANT: return true;
    default: return false;
  }
}

namespace {

// Adds a node whose op plays a role. REQUIRES: it has inputs, the first of which tells its place in the program.
StatusOr<Edge> AddRole(Graph* g, std::string_view role, std::vector<Edge> in, std::map<std::string, AttrValue> attrs,
                       const std::string& scope, const std::string& device = "") {
  ASSIGN_OR_RETURN(const OpSchema* op, g->runtime().registry().FindRole(role));
  NodeSpec spec;
  spec.op = op->name;
  spec.name = g->UniqueName(scope + op->name);
  spec.place = in[0].node->place();
  spec.inputs = std::move(in);
  spec.attrs = std::move(attrs);
  spec.device = device;
  ASSIGN_OR_RETURN(const Node* n, g->AddNode(std::move(spec)));
  return Edge{n, 0};
}

// The shape of a value as a vector: a constant where it is known.
StatusOr<Edge> ShapeVector(Graph* g, Edge e, uint32_t dtype, const std::string& scope) {
  const Shape& s = e.node->shape(e.port);
  if (!s.known()) return AddRole(g, "shape", {e}, {{"out_type", AttrValue::Type(dtype)}}, scope);
  Tensor t;
  if (dtype == TW_INT64) {
    ASSIGN_OR_RETURN(t, Tensor::Vector<int64_t>(TW_INT64, {s.dims().begin(), s.dims().end()}));
  } else {
    for (int64_t d : s.dims()) {
      if (d > INT32_MAX) return InvalidArgument("the shape ", s.text(), " of '", Shown(e.text()), "' does not fit int32");
    }
    ASSIGN_OR_RETURN(t, Tensor::Vector<int32_t>(TW_INT32, std::vector<int32_t>(s.dims().begin(), s.dims().end())));
  }
  return g->AddConst(t, g->UniqueName(scope + "shape"), e.node->place());
}

// All that arrives at one value.
struct Arriving {
  std::vector<Edge> dense;
  std::vector<Gradient> sparse;
  bool any() const { return !dense.empty() || !sparse.empty(); }
};

struct EdgeLess {
  bool operator()(const Edge& a, const Edge& b) const { return a.node != b.node ? a.node->id() < b.node->id() : a.port < b.port; }
};

class Differentiator;

// What one gradient callback builds with.
class GradBuilder final : public tw_builder {
 public:
  GradBuilder(Differentiator* d, const Node* n, std::string scope) : d_(d), node_(n), scope_(std::move(scope)) {}
  tw_edge Emit(std::string_view op, const tw_edge* in, uint32_t n, const tw_attr* attrs, uint32_t n_attrs) override;
  tw_edge Output(tw_edge node, uint32_t i) override;
  tw_edge Constant(uint32_t dtype, const int64_t* dims, uint32_t rank, const void* data, uint64_t bytes) override;
  Status Describe(tw_edge e, uint32_t* out_dtype, tw_shape* out_shape) override;
  tw_edge Input(uint32_t i) override;
  tw_edge Result(uint32_t o) override;
  tw_edge ShapeOf(uint32_t i) override;
  tw_edge Dy(uint32_t o) override;
  uint32_t HasDy(uint32_t o) override;
  tw_edge DySparse(uint32_t o, tw_edge* out_rows) override;
  void Dx(uint32_t i, tw_edge values) override;
  void DxSparse(uint32_t i, tw_edge rows, tw_edge values) override;

 private:
  // tw_edge: node id + 1 in the upper bits, port in the lower 16.
  static tw_edge ToC(Edge e) { return (uint64_t(e.node->id()) + 1) << 16 | uint64_t(e.port); }
  bool FromC(tw_edge c, Edge* e);
  tw_edge Answer(StatusOr<Edge> e) {
    if (e.ok()) return ToC(*e);
    Fail(e.status());
    return 0;
  }

  Differentiator* d_;
  const Node* node_;
  std::string scope_;
};

class Differentiator {
 public:
  Differentiator(Graph* g, std::string scope, const Keeping& keeping) : graph_(g), scope_(std::move(scope)), keeping_(keeping) {}

  // REQUIRES: ys, xs and stop are the forms of values.
  Status Run(const std::vector<Edge>& ys, const std::vector<Edge>& dys, const std::vector<Edge>& xs, const std::vector<Edge>& stop,
             std::vector<Gradient>* out) {
    for (const Edge& e : stop) stop_.insert(e);
    MarkBetween(ys, xs);
    for (size_t i = 0; i < ys.size(); ++i) {
      Edge dy;
      if (!dys.empty() && dys[i]) {
        dy = dys[i];
        const uint32_t type = BaseType(ys[i].node->out_type(ys[i].port));
        if (const uint32_t given = BaseType(dy.node->out_type(dy.port)); given != type) {
          return InvalidArgument("the gradient given for '", Shown(ys[i].text()), "' is ", DTypeName(given), ", not ", DTypeName(type));
        }
        if (!dy.node->shape(dy.port).Admits(ys[i].node->shape(ys[i].port))) {
          return InvalidArgument("the gradient given for '", Shown(ys[i].text()), "' has shape ", dy.node->shape(dy.port).text(), ", not ",
                                 ys[i].node->shape(ys[i].port).text());
        }
      } else {
        ASSIGN_OR_RETURN(dy, AddRole(graph_, "ones_like", {ys[i]}, {}, scope_));
      }
      arriving_[ys[i]].dense.push_back(dy);
    }
    // Every reader comes before its producer.
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

  Graph* graph() { return graph_; }
  const std::string& scope() const { return scope_; }
  // Something flows back through e; not where e is stopped, whatever arrived there.
  bool Has(Edge e) const {
    auto it = arriving_.find(e);
    return it != arriving_.end() && it->second.any() && !stop_.count(e);
  }
  void Add(Edge x, Gradient g) {
    x = FormOf(*graph_, x);
    // What nobody asked for is not collected.
    if (!useful_.count(x)) return;
    if (!visiting_.ok()) blocked_.emplace(x, visiting_);
    if (g.sparse()) {
      arriving_[x].sparse.push_back(g);
    } else {
      arriving_[x].dense.push_back(g.values);
    }
  }

  // The sum of what arrived at e; empty values if nothing did. may_be_sparse false: made dense.
  StatusOr<Gradient> Collect(Edge e, bool may_be_sparse) {
    auto it = arriving_.find(e);
    if (it == arriving_.end() || !it->second.any()) return Gradient{};
    Arriving& a = it->second;
    std::string scope = StrCat(scope_, e.node->name(), "/");
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

 private:
  StatusOr<Edge> ConcatRows(std::vector<Edge> parts, const std::string& scope) {
    uint32_t type = parts[0].node->out_type(parts[0].port);
    for (Edge& p : parts) {
      if (p.node->out_type(p.port) == type) continue;
      // Rows of int32 and int64 meet: the wider one serves both.
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

  // between_: nodes on a path from an x to a y; useful_: the values on such paths.
  void MarkBetween(const std::vector<Edge>& ys, const std::vector<Edge>& xs) {
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
    // Ids are a topological order (a node's inputs exist before it), but forms come later than what reads them.
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

  // order_: each node behind those that it reads, otherwise as before.
  void SortByInputs() {
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

  Status Visit(const Node* n) {
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

  // op: whose gradient it is.
  Status VisitOp(const Node* n, const OpSchema& op) {
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
    GradBuilder b(this, n, StrCat(scope_, n->name(), "/"));
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

  NodeGradient GradientOf(const Node* n) {
    NodeGradient g;
    g.keeping = keeping_;
    g.has_dy = [this, n](int32_t o) { return Has({n, o}); };
    g.dy = [this, n](int32_t o) -> StatusOr<Edge> {
      if (!Has({n, o})) return AddRole(graph_, "zeros_like", {{n, o}}, {}, StrCat(scope_, n->name(), "/"));
      ASSIGN_OR_RETURN(const Gradient sum, Collect({n, o}, false));
      return sum.values;
    };
    g.wants_dx = [this, n](int32_t i) { return i < n->n_in() && useful_.count(FormOf(*graph_, n->inputs()[size_t(i)])) > 0; };
    g.dx = [this, n](int32_t i, Edge values) {
      if (i < n->n_in()) Add(n->inputs()[size_t(i)], {values, {}});
    };
    return g;
  }

  Status VisitCall(const Node* n) {
    Status s = AddFunctionGradient(graph_, *n, StrCat(scope_, n->name(), "/"), GradientOf(n));
    return s.ok() ? s : OfNode(*n, Prefix(s, StrCat("gradient of ", n->title(), ":")));
  }

  // A node that names its gradient: a function of the graph's library, or that of another op.
  Status VisitNamed(const Node* n, const std::string& name) {
    const auto library = graph_->functions();
    if (const auto stored = library ? library->GradientOf(name) : std::nullopt) {
      const NodeGradient g = GradientOf(n);
      CallGradient c(graph_, *n, StrCat(scope_, n->name(), "/"), g);
      Status s = c.Open();
      if (s.ok()) s = AddStoredGradient(c, *stored);
      return s.ok() ? s : OfNode(*n, Prefix(s, StrCat("gradient of ", n->title(), ":")));
    }
    const OpSchema* op = graph_->runtime().registry().FindOp(name);
    if (op && op->inputs.size() == n->op().inputs.size() && op->outputs.size() == n->op().outputs.size()) return VisitOp(n, *op);
    if (visiting_.ok()) {
      visiting_ =
          OfNode(*n, FailedPrecondition(n->title(), ": its gradient is '", Shown(name), "', as its attribute '_gradient_op_type' says",
                                        ", but neither the graph's function library nor a plugin has that; write the graph with its ",
                                        "custom gradients, or stop the gradient before the node"));
    }
    return Block(n);
  }

  // Node n cannot be differentiated. That is an error only if an x lies before it with nothing in between that ends the path, so what its
  // inputs get is a zero that remembers why.
  Status Block(const Node* n) {
    for (const Edge& in : n->inputs()) {
      if (!useful_.count(FormOf(*graph_, in))) continue;
      uint32_t type = BaseType(in.node->out_type(in.port));
      if (type == TW_RESOURCE || type == TW_VARIANT) return visiting_;
      ASSIGN_OR_RETURN(Edge zeros, AddRole(graph_, "zeros_like", {in}, {}, StrCat(scope_, n->name(), "/")));
      Add(in, {zeros, {}});
    }
    return Status();
  }

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

bool GradBuilder::FromC(tw_edge c, Edge* e) {
  const uint64_t id = (c >> 16) - 1;
  const auto port = int32_t(c & 0xffff);
  if (c == 0 || id >= uint64_t(d_->graph()->size()) || port >= d_->graph()->node(int32_t(id))->n_out()) {
    Fail(InvalidArgument("an edge given to the builder does not exist (did an earlier call fail?)"));
    return false;
  }
  *e = {d_->graph()->node(int32_t(id)), port};
  return true;
}

tw_edge GradBuilder::Emit(std::string_view op, const tw_edge* in, uint32_t n, const tw_attr* attrs, uint32_t n_attrs) {
  NodeSpec spec;
  spec.op = std::string(op);
  spec.name = d_->graph()->UniqueName(StrCat(scope_, op));
  spec.device = node_->device();
  spec.place = node_->place();
  for (uint32_t i = 0; i < n; ++i) {
    Edge e;
    if (!FromC(in[i], &e)) return 0;
    spec.inputs.push_back(e);
  }
  for (uint32_t i = 0; i < n_attrs; ++i) {
    auto v = AttrValue::FromC(attrs[i]);
    if (!v.ok()) return Fail(v.status()), 0;
    spec.attrs[std::string(attrs[i].name, attrs[i].name_len)] = *std::move(v);
  }
  auto node = d_->graph()->AddNode(std::move(spec));
  if (!node.ok()) return Fail(node.status()), 0;
  return ToC({*node, 0});
}

tw_edge GradBuilder::Output(tw_edge node, uint32_t i) {
  Edge e;
  if (!FromC(node, &e)) return 0;
  if (i >= uint32_t(e.node->n_out())) return Fail(InvalidArgument("'", Shown(e.node->name()), "' has no output ", i)), 0;
  return ToC({e.node, int32_t(i)});
}

tw_edge GradBuilder::Constant(uint32_t dtype, const int64_t* dims, uint32_t rank, const void* data, uint64_t bytes) {
  auto t = Tensor::Make(dtype, dims, int32_t(rank));
  if (!t.ok()) return Fail(t.status()), 0;
  if (t->bytes() != bytes || !FindDType(dtype)->plain) {
    return Fail(InvalidArgument("a constant of ", DTypeName(dtype), " and shape ", t->shape().text(), " needs ", t->bytes(), " bytes, not ",
                                bytes)),
           0;
  }
  std::copy_n(static_cast<const char*>(data), bytes, static_cast<char*>(t->data()));
  return Answer(d_->graph()->AddConst(*t, d_->graph()->UniqueName(scope_ + "Const"), node_->place()));
}

Status GradBuilder::Describe(tw_edge c, uint32_t* out_dtype, tw_shape* out_shape) {
  Edge e;
  if (!FromC(c, &e)) return status;
  *out_dtype = BaseType(e.node->out_type(e.port));
  *out_shape = e.node->shape(e.port).c();  // lives with the graph
  return Status();
}

tw_edge GradBuilder::Input(uint32_t i) {
  if (i >= uint32_t(node_->n_in())) return Fail(InvalidArgument("there is no input ", i)), 0;
  return ToC(node_->inputs()[i]);
}
tw_edge GradBuilder::Result(uint32_t o) {
  if (o >= uint32_t(node_->n_out())) return Fail(InvalidArgument("there is no output ", o)), 0;
  return ToC({node_, int32_t(o)});
}
tw_edge GradBuilder::ShapeOf(uint32_t i) {
  if (i >= uint32_t(node_->n_in())) return Fail(InvalidArgument("there is no input ", i)), 0;
  return Answer(ShapeVector(d_->graph(), node_->inputs()[i], TW_INT32, scope_));
}
tw_edge GradBuilder::Dy(uint32_t o) {
  if (o >= uint32_t(node_->n_out())) return Fail(InvalidArgument("there is no output ", o)), 0;
  if (!HasDy(o)) return Answer(AddRole(d_->graph(), "zeros_like", {{node_, int32_t(o)}}, {}, scope_));
  auto g = d_->Collect({node_, int32_t(o)}, false);
  if (!g.ok()) return Fail(g.status()), 0;
  return ToC(g->values);
}
uint32_t GradBuilder::HasDy(uint32_t o) { return o < uint32_t(node_->n_out()) && d_->Has({node_, int32_t(o)}); }
tw_edge GradBuilder::DySparse(uint32_t o, tw_edge* out_rows) {
  if (o >= uint32_t(node_->n_out())) return Fail(InvalidArgument("there is no output ", o)), 0;
  if (!HasDy(o)) return 0;
  auto g = d_->Collect({node_, int32_t(o)}, true);
  if (!g.ok()) return Fail(g.status()), 0;
  if (!g->sparse()) return 0;
  *out_rows = ToC(g->rows);
  return ToC(g->values);
}
void GradBuilder::Dx(uint32_t i, tw_edge values) {
  Edge e;
  if (i >= uint32_t(node_->n_in())) return Fail(InvalidArgument("there is no input ", i));
  if (!FromC(values, &e)) return;
  Edge x = node_->inputs()[i];
  uint32_t want = x.node->out_type(x.port), have = e.node->out_type(e.port);
  const Shape *wanted = &x.node->shape(x.port), &shape = e.node->shape(e.port);
  if (want == TW_RESOURCE && x.node->handle(x.port).dtype) {
    want = x.node->handle(x.port).dtype;
    wanted = &x.node->handle(x.port).shape;
  }
  if (want != TW_RESOURCE && BaseType(want) != have) {
    return Fail(InvalidArgument("the gradient of input ", i, " is ", DTypeName(have), ", not ", DTypeName(want)));
  }
  if (want != TW_RESOURCE && !shape.Admits(*wanted)) {
    return Fail(InvalidArgument("the gradient of input ", i, " has shape ", shape.text(), ", not ", wanted->text()));
  }
  d_->Add(x, {e, {}});
}
void GradBuilder::DxSparse(uint32_t i, tw_edge rows, tw_edge values) {
  Edge r, v;
  if (i >= uint32_t(node_->n_in())) return Fail(InvalidArgument("there is no input ", i));
  if (!FromC(rows, &r) || !FromC(values, &v)) return;
  uint32_t type = r.node->out_type(r.port);
  if (type != TW_INT32 && type != TW_INT64)
    return Fail(InvalidArgument("rows of a sparse gradient must be int32 or int64, not ", DTypeName(type)));
  d_->Add(node_->inputs()[i], {v, r});
}

}  // namespace

StatusOr<Edge> Densify(Graph* g, const Gradient& grad, Edge like, const std::string& scope) {
  if (!grad.sparse()) return grad.values;
  uint32_t type = grad.rows.node->out_type(grad.rows.port);
  ASSIGN_OR_RETURN(Tensor column, Tensor::Vector<int32_t>(TW_INT32, {-1, 1}));
  ASSIGN_OR_RETURN(Edge column_shape, g->AddConst(column, g->UniqueName(scope + "column")));
  ASSIGN_OR_RETURN(Edge indices, AddRole(g, "reshape", {grad.rows, column_shape}, {}, scope));
  Edge shape;
  const Node* n = like.node;
  if (n->out_type(like.port) == TW_RESOURCE) {
    // The variable's shape: by its handle where it is known, else it would have to be read.
    const Shape& s = n->handle(like.port).shape;
    if (!s.known()) {
      return Unimplemented("a sparse gradient of '", Shown(like.text()),
                           "' cannot be made dense: the variable's shape is unknown; declare it");
    }
    Tensor t;
    if (type == TW_INT64) {
      ASSIGN_OR_RETURN(t, Tensor::Vector<int64_t>(TW_INT64, {s.dims().begin(), s.dims().end()}));
    } else {
      ASSIGN_OR_RETURN(t, Tensor::Vector<int32_t>(TW_INT32, std::vector<int32_t>(s.dims().begin(), s.dims().end())));
    }
    ASSIGN_OR_RETURN(shape, g->AddConst(t, g->UniqueName(scope + "shape")));
  } else {
    ASSIGN_OR_RETURN(shape, ShapeVector(g, like, type, scope));
  }
  return AddRole(g, "scatter_nd", {indices, grad.values, shape}, {}, scope);
}

Status AddGradients(Graph* graph, const std::vector<Edge>& ys, const std::vector<Edge>& dys, const std::vector<Edge>& xs,
                    std::vector<Gradient>* out, const std::vector<Edge>& stop, const Keeping& keeping) {
  out->clear();
  if (!dys.empty() && dys.size() != ys.size()) return InvalidArgument(ys.size(), " values but ", dys.size(), " gradients for them");
  for (const auto& list : {ys, xs}) {
    for (const Edge& e : list) {
      if (!e) return InvalidArgument("a value to differentiate is missing");
      if (!HasGradients(e.node->out_type(e.port))) {
        return InvalidArgument("'", Shown(e.text()), "' is ", DTypeName(e.node->out_type(e.port)),
                               "; only floating-point and complex values have gradients");
      }
    }
  }
  RETURN_IF_ERROR(AddFunctionalForms(graph, ys, xs));
  const auto forms = [graph](std::vector<Edge> values) {
    for (Edge& e : values) e = FormOf(*graph, e);
    return values;
  };
  std::string scope = graph->UniqueName("gradients") + "/";
  return Differentiator(graph, scope, keeping).Run(forms(ys), dys, forms(xs), forms(stop), out);
}

}  // namespace thalweg
