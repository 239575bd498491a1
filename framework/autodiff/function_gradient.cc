#include "framework/autodiff/function_gradient.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_set>
#include <utility>

#include "framework/autodiff/autodiff.h"
#include "framework/base/dtype.h"
#include "framework/base/shown.h"
#include "framework/graph/builder.h"
#include "framework/graph/copy_nodes.h"
#include "framework/graph/function.h"
#include "framework/graph/function_shapes.h"
#include "framework/runtime/runtime.h"

namespace thalweg {
namespace {

using Mask = std::vector<uint8_t>;

// ---- Adding nodes ----

StatusOr<const Node*> AddNode(Graph* g, const OpSchema& op, const std::string& name, std::vector<Edge> in,
                              std::map<std::string, AttrValue> attrs, const Node& like) {
  NodeSpec spec;
  spec.op = op.name;
  spec.name = g->UniqueName(name);
  spec.inputs = std::move(in);
  spec.attrs = std::move(attrs);
  spec.device = like.device();
  spec.place = like.place();
  return g->AddNode(std::move(spec));
}

StatusOr<const Node*> AddRole(Graph* g, std::string_view role, std::vector<Edge> in, std::map<std::string, AttrValue> attrs,
                              const Node& like) {
  ASSIGN_OR_RETURN(const OpSchema* op, g->runtime().registry().FindRole(role));
  return AddNode(g, *op, op->name, std::move(in), std::move(attrs), like);
}

StatusOr<Edge> AddScalar(Graph* g, int32_t value, const Node& like) {
  ASSIGN_OR_RETURN(Tensor t, ScalarTensor(TW_INT32, value));
  return g->AddConst(t, g->UniqueName("Const"), like.place());
}

// k + by, of int32.
StatusOr<Edge> AddTo(Graph* g, Edge k, int32_t by, const Node& like) {
  ASSIGN_OR_RETURN(const Edge constant, AddScalar(g, by, like));
  ASSIGN_OR_RETURN(const Node* sum, AddRole(g, "add_n", {k, constant}, {}, like));
  return Edge{sum, 0};
}

uint32_t TypeOf(const Edge& e) { return BaseType(e.node->out_type(e.port)); }

bool IsHandle(const Edge& e) { return TypeOf(e) == TW_RESOURCE; }

// Zeros like a value, or like the variable that a handle leads to.
StatusOr<Edge> ZerosLike(Graph* g, Edge e, const Node& like) {
  if (IsHandle(e)) {
    const uint32_t type = e.node->handle(e.port).dtype;
    if (!type)
      return Unimplemented("it is not known what variable '", Shown(e.text()), "' is a handle of; make the handle outside of functions");
    ASSIGN_OR_RETURN(const Node* read, AddRole(g, "read_variable", {e}, {{"dtype", AttrValue::Type(type)}}, like));
    e = {read, 0};
  }
  ASSIGN_OR_RETURN(const Node* zeros, AddRole(g, "zeros_like", {e}, {}, like));
  return Edge{zeros, 0};
}

// ---- One function ----

// A function's body in a graph of its own, with the nodes that compute its gradient.
class Differentiated {
 public:
  // f: stays alive as long as this.
  static StatusOr<Differentiated> Make(std::shared_ptr<const Function> f, const Mask& has_dy, const Mask& wants_dx) {
    Differentiated d(std::move(f));
    RETURN_IF_ERROR(d.Build(has_dy, wants_dx));
    return d;
  }

  const Function& function() const { return *f_; }
  Graph& graph() const { return *graph_; }
  const std::shared_ptr<Graph>& shared_graph() const { return graph_; }
  const std::vector<Edge>& args() const { return args_; }
  const std::vector<Edge>& results() const { return results_; }
  const std::vector<const Node*>& targets() const { return targets_; }
  const std::vector<Edge>& dys() const { return dys_; }              // per result; empty: nothing arrives
  const std::vector<Edge>& dxs() const { return dxs_; }              // per argument; empty: it has none
  const std::vector<Edge>& captures() const { return captures_; }    // values of the forward part that are neither arguments nor known
  const std::vector<Edge>& used_args() const { return used_args_; }  // arguments that the backward part reads
  bool is_argument(const Edge& e) const { return std::find(args_.begin(), args_.end(), e) != args_.end(); }

  // Copies the backward part. REQUIRES: *copied has what stands for arguments, captures and dys.
  Status CopyBackward(Graph* to, Copied* copied) const {
    for (const Node* n : backward_) {
      for (const Edge& e : n->inputs()) RETURN_IF_ERROR(CopyKnown(e, to, copied));
      RETURN_IF_ERROR(CopyNode(*n, to, copied).status());
    }
    for (const Edge& e : dxs_) {
      if (e) RETURN_IF_ERROR(CopyKnown(e, to, copied));
    }
    for (const Node* n : backward_) {
      if (const Node* longer = graph_->ExtendedBy(n)) to->Extend(copied->Find(n), copied->Find(longer));
    }
    return Status();
  }

 private:
  explicit Differentiated(std::shared_ptr<const Function> f) : f_(std::move(f)), graph_(Graph::Body(f_->body())) {}

  Status Build(const Mask& has_dy, const Mask& wants_dx) {
    Copied copied;
    RETURN_IF_ERROR(CopyNodes(f_->body(), graph_.get(), &copied));
    for (const Edge& e : f_->args()) args_.push_back(copied.Find(e));
    for (const Edge& e : f_->results()) results_.push_back(copied.Find(e));
    for (const Node* n : f_->targets()) targets_.push_back(copied.Find(n));
    const int32_t n_forward = graph_->size();
    std::vector<Edge> ys, dys, xs;
    dys_.resize(results_.size());
    for (size_t o = 0; o < results_.size(); ++o) {
      if (!has_dy[o]) continue;
      ASSIGN_OR_RETURN(dys_[o], graph_->AddArgument(results_[o], graph_->UniqueName("dy")));
      ys.push_back(results_[o]);
      dys.push_back(dys_[o]);
    }
    std::vector<size_t> of;
    for (size_t i = 0; i < args_.size(); ++i) {
      if (!wants_dx[i]) continue;
      xs.push_back(args_[i]);
      of.push_back(i);
    }
    dxs_.resize(args_.size());
    std::vector<Gradient> gradients;
    RETURN_IF_ERROR(AddGradients(graph_.get(), ys, dys, xs, &gradients));
    for (size_t k = 0; k < of.size(); ++k) {
      if (!gradients[k].values) continue;
      ASSIGN_OR_RETURN(dxs_[of[k]], Densify(graph_.get(), gradients[k], xs[k], ""));
    }
    Split(n_forward);
    return Status();
  }

  // The forward part: the function's own nodes, those that run in the place of others, and what they read.
  void Split(int32_t n_forward) {
    std::unordered_set<const Node*> forward;
    std::vector<const Node*> todo;
    for (int32_t id = 0; id < n_forward; ++id) {
      for (const Node* n = graph_->node(id); n; n = graph_->ExtendedBy(n)) todo.push_back(n);
    }
    while (!todo.empty()) {
      const Node* n = todo.back();
      todo.pop_back();
      if (!forward.insert(n).second) continue;
      for (const Edge& e : n->inputs()) todo.push_back(e.node);
    }
    std::set<int32_t> backward;
    for (const Edge& e : dxs_) {
      if (e) todo.push_back(e.node);
      if (e) Capture(e, forward);
    }
    while (!todo.empty()) {
      const Node* n = todo.back();
      todo.pop_back();
      if (forward.count(n) || n->op().role == "placeholder" || !backward.insert(n->id()).second) continue;
      for (const Edge& e : n->inputs()) {
        Capture(e, forward);
        todo.push_back(e.node);
      }
      for (const Node* by = graph_->ExtendedBy(n); by; by = graph_->ExtendedBy(by)) todo.push_back(by);
    }
    for (int32_t id : backward) backward_.push_back(graph_->node(id));
  }

  void Capture(const Edge& e, const std::unordered_set<const Node*>& forward) {
    if (!forward.count(e.node) || e.node->value(e.port) || IsMadeAnywhere(*e.node)) return;
    std::vector<Edge>& to = is_argument(e) ? used_args_ : captures_;
    if (std::find(to.begin(), to.end(), e) == to.end()) to.push_back(e);
  }

  // A handle by its name: made again where it is wanted.
  static bool IsMadeAnywhere(const Node& n) { return n.op().once && n.inputs().empty(); }

  // What needs no capture.
  static Status CopyKnown(const Edge& e, Graph* to, Copied* copied) {
    if (copied->Find(e)) return Status();
    if (const Tensor& known = e.node->value(e.port)) {
      ASSIGN_OR_RETURN(const Edge constant, to->AddConst(known, to->UniqueName(e.node->name()), e.node->place()));
      copied->Put(e, constant);
      return Status();
    }
    return IsMadeAnywhere(*e.node) ? CopyNode(*e.node, to, copied).status() : Internal("'", Shown(e.text()), "' was not captured");
  }

  std::shared_ptr<const Function> f_;
  std::shared_ptr<Graph> graph_;
  std::vector<Edge> args_, results_, dys_, dxs_, captures_, used_args_;
  std::vector<const Node*> targets_, backward_;
};

// ---- What nodes share ----

// The results that depend on arguments: a row per result.
std::vector<Mask> Dependencies(const Function& f) {
  std::map<const Node*, Mask> on;
  for (size_t i = 0; i < f.args().size(); ++i) {
    Mask& mine = on[f.args()[i].node];
    mine.resize(f.args().size());
    mine[i] = 1;
  }
  for (int32_t id = 0; id < f.body().size(); ++id) {
    const Node* n = f.body().node(id);
    if (on.count(n)) continue;
    Mask& mine = on[n];
    mine.resize(f.args().size());
    for (const Edge& e : n->inputs()) {
      const Mask& theirs = on[e.node];
      for (size_t i = 0; i < mine.size(); ++i) mine[i] |= theirs[i];
    }
  }
  std::vector<Mask> rows;
  for (const Edge& e : f.results()) rows.push_back(on[e.node]);
  return rows;
}

// A handle has none itself: what it leads to has.
bool HasGradient(uint32_t type) { return BaseType(type) != TW_RESOURCE && HasGradients(type); }

std::vector<uint32_t> Types(const std::vector<Edge>& values) {
  std::vector<uint32_t> types;
  for (const Edge& e : values) types.push_back(TypeOf(e));
  return types;
}

std::vector<Shape> Shapes(const std::vector<Edge>& values) {
  std::vector<Shape> shapes;
  for (const Edge& e : values) shapes.push_back(e.node->shape(e.port));
  return shapes;
}

bool IsStateful(const Graph& g) {
  for (int32_t id = 0; id < g.size(); ++id) {
    if (g.node(id)->op().stateful) return true;
  }
  return false;
}

class Builder {
 public:
  Builder(Graph* graph, const Node& node, const std::string& scope, const NodeGradient& gradient)
      : graph_(graph), node_(&node), scope_(scope), gradient_(gradient), role_(CallRole(node.op())), n_given_(node.n_out()) {
    for (const Node* by = graph->ExtendedBy(node_); by; by = graph->ExtendedBy(by)) node_ = by;
  }

  Status Run() {
    auto library = graph_->functions();
    if (!library) return FailedPrecondition("the graph around this one is gone");
    library_ = library.get();
    if (role_ == "while") return While();
    if (role_ == "call") return Branches({"f"}, 0);
    return role_ == "if" ? Branches({"then_branch", "else_branch"}, 1) : Branches({"branches"}, 1);
  }

 private:
  StatusOr<std::shared_ptr<const Function>> Find(const std::string& name) const { return library_->Find(name); }

  StatusOr<std::string> AddFunction(const std::string& name, std::shared_ptr<Graph> body, std::vector<Edge> args, std::vector<Edge> results,
                                    std::vector<const Node*> targets = {}) {
    FunctionSpec spec;
    spec.name = library_->UniqueName(name);
    spec.body = std::move(body);
    spec.args = std::move(args);
    spec.results = std::move(results);
    spec.targets = std::move(targets);
    ASSIGN_OR_RETURN(auto f, Function::Make(std::move(spec)));
    RETURN_IF_ERROR(library_->Add(f));
    return f->name();
  }

  std::vector<Edge> Outputs(const Node& n, size_t from, size_t count) const {
    std::vector<Edge> all;
    for (size_t o = from; o < from + count; ++o) all.push_back({&n, int32_t(o)});
    return all;
  }

  // The node with more inputs and outputs, which runs in its place.
  StatusOr<const Node*> Extended(std::vector<Edge> more_inputs, std::map<std::string, AttrValue> changed) {
    NodeSpec spec;
    spec.op = node_->op().name;
    spec.name = graph_->UniqueName(node_->name() + "_with_captures");
    spec.inputs = node_->inputs();
    spec.inputs.insert(spec.inputs.end(), more_inputs.begin(), more_inputs.end());
    spec.controls = node_->controls();
    for (size_t a = 0; a < node_->attrs().size(); ++a) {
      const std::string& name = node_->op().attrs[a].name;
      if (name != "T" && !changed.count(name)) spec.attrs[name] = node_->attrs()[a];
    }
    spec.attrs.merge(changed);
    spec.extra_attrs = node_->extra_attrs();
    spec.device = node_->device();
    spec.colocate_with = node_->colocate_with();
    spec.place = node_->place();
    spec.imported = node_->imported();
    ASSIGN_OR_RETURN(const Node* by, graph_->AddNode(std::move(spec)));
    graph_->Extend(node_, by);
    return by;
  }

  StatusOr<const OpSchema*> Op(bool is_stateful) const {
    return graph_->runtime().registry().FindRole(is_stateful ? std::string(role_) : StrCat("stateless_", role_));
  }

  // ---- Conditions and calls: one of several functions is called once ----

  // first: inputs before the arguments.
  Status Branches(const std::vector<std::string>& attrs, int32_t first) {
    std::vector<std::string> names;
    for (const std::string& a : attrs) {
      const auto& functions = node_->FindAttr(a)->strings();
      names.insert(names.end(), functions.begin(), functions.end());
    }
    const int32_t n_args = node_->n_in() - first;
    std::vector<Differentiated> all;
    std::vector<Edge> captures;
    Mask has_dx(static_cast<size_t>(n_args));
    for (const std::string& name : names) {
      ASSIGN_OR_RETURN(auto f, Find(name));
      if (int32_t(f->args().size()) != n_args || int32_t(f->results().size()) != node_->n_out()) {
        return InvalidArgument("function ", f->title(), " does not fit the node's ", n_args, " arguments and ", node_->n_out(), " results");
      }
      Mask has_dy, wants_dx;
      for (int32_t o = 0; o < node_->n_out(); ++o) has_dy.push_back(HasDy(o) && HasGradient(f->result_type(size_t(o))));
      for (int32_t i = 0; i < n_args; ++i) wants_dx.push_back(gradient_.wants_dx(first + i));
      ASSIGN_OR_RETURN(Differentiated d, Differentiated::Make(std::move(f), has_dy, wants_dx));
      captures.insert(captures.end(), d.captures().begin(), d.captures().end());
      for (int32_t i = 0; i < n_args; ++i) has_dx[size_t(i)] |= bool(d.dxs()[size_t(i)]);
      all.push_back(std::move(d));
    }
    const Node* forward = node_;
    if (!captures.empty()) {
      ASSIGN_OR_RETURN(forward, ForwardBranches(attrs, all, captures));
    }
    return BackwardBranches(attrs, all, captures, has_dx, first, *forward);
  }

  bool HasDy(int32_t o) const { return o < n_given_ && gradient_.has_dy(o); }

  // Every branch gives all captures, those of others as empty values.
  StatusOr<const Node*> ForwardBranches(const std::vector<std::string>& attrs, const std::vector<Differentiated>& all,
                                        const std::vector<Edge>& captures) {
    std::vector<std::string> names;
    for (const Differentiated& d : all) {
      std::vector<Edge> results = d.results();
      for (const Edge& e : captures) {
        const bool mine = std::find(d.captures().begin(), d.captures().end(), e) != d.captures().end();
        ASSIGN_OR_RETURN(results.emplace_back(), mine ? StatusOr<Edge>(e) : Nothing(&d.graph(), TypeOf(e)));
      }
      ASSIGN_OR_RETURN(names.emplace_back(),
                       AddFunction(d.function().name() + "_forward", d.shared_graph(), d.args(), results, d.targets()));
    }
    std::map<std::string, AttrValue> changed = Functions(attrs, names);
    std::vector<uint32_t> types(node_->types().begin() + node_->n_in(), node_->types().end());
    const std::vector<uint32_t> more = Types(captures);
    types.insert(types.end(), more.begin(), more.end());
    changed["Tout"] = AttrValue::Types(types);
    if (const AttrValue* stated = node_->FindAttr("output_shapes"); stated && !stated->shapes().empty()) {
      std::vector<Shape> shapes(stated->shapes().begin(), stated->shapes().end());
      const std::vector<Shape> theirs = all.size() == 1 ? Shapes(captures) : std::vector<Shape>(captures.size());
      shapes.insert(shapes.end(), theirs.begin(), theirs.end());
      changed["output_shapes"] = AttrValue::Shapes(shapes);
    }
    return Extended({}, std::move(changed));
  }

  // A value of the type without elements.
  StatusOr<Edge> Nothing(Graph* g, uint32_t type) const {
    if (type == TW_VARIANT) return NewList(g, TW_FLOAT);
    if (type == TW_RESOURCE) return Unimplemented("a handle that is made inside a branch is wanted by its gradient; make it outside");
    const int64_t none = 0;
    ASSIGN_OR_RETURN(Tensor t, Tensor::Make(type, &none, 1));
    return g->AddConst(t, g->UniqueName("nothing"), node_->place());
  }

  static std::map<std::string, AttrValue> Functions(const std::vector<std::string>& attrs, const std::vector<std::string>& names) {
    std::map<std::string, AttrValue> all;
    if (attrs.size() == 1 && attrs[0] == "branches") {
      all["branches"] = AttrValue::Funcs(names);
    } else {
      for (size_t k = 0; k < attrs.size(); ++k) all[attrs[k]] = AttrValue::Func(names[k]);
    }
    return all;
  }

  Status BackwardBranches(const std::vector<std::string>& attrs, const std::vector<Differentiated>& all, const std::vector<Edge>& captures,
                          const Mask& has_dx, int32_t first, const Node& forward) {
    std::vector<Edge> in(node_->inputs().begin(), node_->inputs().begin() + first);  // of the node
    const std::vector<Edge> captured = Outputs(forward, size_t(node_->n_out()), captures.size());
    in.insert(in.end(), captured.begin(), captured.end());
    in.insert(in.end(), node_->inputs().begin() + first, node_->inputs().end());
    for (int32_t o = 0; o < node_->n_out(); ++o) {
      if (!all[0].dys()[size_t(o)]) continue;
      ASSIGN_OR_RETURN(in.emplace_back(), gradient_.dy(o));
    }
    std::vector<std::string> names;
    std::vector<uint32_t> types;
    bool is_stateful = false;
    for (const Differentiated& d : all) {
      std::shared_ptr<Graph> body = Graph::Body(*graph_);
      Copied copied;
      std::vector<Edge> args, results;
      auto argument = [&](const Edge& e) -> Status {
        ASSIGN_OR_RETURN(args.emplace_back(), body->AddArgument(e, body->UniqueName(e.node->name()), e.node->place()));
        copied.Put(e, args.back());
        return Status();
      };
      for (const Edge& e : captures) {
        const bool mine = std::find(d.captures().begin(), d.captures().end(), e) != d.captures().end();
        if (mine) {
          RETURN_IF_ERROR(argument(e));
        } else {  // of the shape that Nothing has
          ASSIGN_OR_RETURN(args.emplace_back(), Placeholder(body.get(), TypeOf(e), Shape(), "other"));
        }
      }
      for (const Edge& e : d.args()) RETURN_IF_ERROR(argument(e));
      for (const Edge& e : d.dys()) {
        if (e) RETURN_IF_ERROR(argument(e));
      }
      RETURN_IF_ERROR(d.CopyBackward(body.get(), &copied));
      for (size_t i = 0; i < has_dx.size(); ++i) {
        if (!has_dx[i]) continue;
        ASSIGN_OR_RETURN(results.emplace_back(),
                         d.dxs()[i] ? StatusOr<Edge>(copied.Find(d.dxs()[i])) : ZerosLike(body.get(), copied.Find(d.args()[i]), *node_));
      }
      types = Types(results);
      is_stateful = is_stateful || IsStateful(*body);
      ASSIGN_OR_RETURN(names.emplace_back(), AddFunction(d.function().name() + "_backward", body, args, results));
    }
    if (types.empty()) return Status();
    std::map<std::string, AttrValue> attributes = Functions(attrs, names);
    attributes["Tout"] = AttrValue::Types(types);
    ASSIGN_OR_RETURN(const OpSchema* op, Op(is_stateful));
    ASSIGN_OR_RETURN(const Node* backward, thalweg::AddNode(graph_, *op, scope_ + op->name, std::move(in), std::move(attributes), *node_));
    int32_t o = 0;
    for (size_t i = 0; i < has_dx.size(); ++i) {
      if (has_dx[i]) gradient_.dx(first + int32_t(i), {backward, o++});
    }
    return Status();
  }

  // ---- Loops ----

  StatusOr<Edge> NewList(Graph* g, uint32_t type) const {
    ASSIGN_OR_RETURN(const Edge any, AddScalar(g, -1, *node_));
    ASSIGN_OR_RETURN(const Node* list, AddRole(g, "list", {any, any}, {{"element_dtype", AttrValue::Type(type)}}, *node_));
    return Edge{list, 0};
  }

  StatusOr<Edge> Placeholder(Graph* g, uint32_t type, const Shape& shape, const std::string& name) const {
    ASSIGN_OR_RETURN(const OpSchema* op, g->runtime().registry().FindRole("placeholder"));
    ASSIGN_OR_RETURN(const Node* n,
                     thalweg::AddNode(g, *op, name, {}, {{"dtype", AttrValue::Type(type)}, {"shape", AttrValue::OfShape(shape)}}, *node_));
    return Edge{n, 0};
  }

  // What a loop is, seen from its gradient. `varies`: the variables whose gradient is passed from iteration to iteration.
  struct Loop {
    std::shared_ptr<const Function> cond, body;
    std::vector<uint8_t> varies;
    std::vector<Edge> stored;       // of the body: pushed onto a list each
    std::vector<size_t> unchanged;  // arguments that the gradient reads, the same in every iteration
  };

  bool Unchanged(const Function& body, size_t i) const { return body.results()[i] == body.args()[i]; }

  Status While() {
    Loop loop;
    ASSIGN_OR_RETURN(loop.cond, Find(node_->FindAttr("cond")->strings()[0]));
    ASSIGN_OR_RETURN(loop.body, Find(node_->FindAttr("body")->strings()[0]));
    const size_t n = size_t(node_->n_in());
    if (loop.body->args().size() != n || loop.body->results().size() != n) {
      return InvalidArgument("function ", loop.body->title(), " does not fit the node's ", n, " loop variables");
    }
    RETURN_IF_ERROR(FindVarying(&loop));
    if (std::find(loop.varies.begin(), loop.varies.end(), 1) == loop.varies.end()) return Status();
    Mask has_dy = loop.varies;
    for (size_t o = 0; o < n; ++o) has_dy[o] = has_dy[o] && HasGradient(loop.body->result_type(o));
    ASSIGN_OR_RETURN(const Differentiated d, Differentiated::Make(loop.body, has_dy, loop.varies));
    loop.stored = d.captures();
    for (const Edge& e : d.used_args()) {
      const size_t i = size_t(std::find(d.args().begin(), d.args().end(), e) - d.args().begin());
      if (Unchanged(*loop.body, i)) {
        loop.unchanged.push_back(i);
      } else {
        loop.stored.push_back(e);
      }
    }
    for (const Edge& e : loop.stored) {
      if (IsHandle(e)) return Unimplemented("a handle that is made inside a loop is wanted by its gradient; make it outside");
    }
    ASSIGN_OR_RETURN(const Node* forward, ForwardLoop(loop, d));
    return BackwardLoop(loop, d, *forward);
  }

  // A variable's gradient matters if it depends on an input whose gradient is wanted, and an output that has one depends on it.
  Status FindVarying(Loop* loop) const {
    const size_t n = size_t(node_->n_in());
    const std::vector<Mask> on = Dependencies(*loop->body);
    Mask wanted(n), given(n);
    for (size_t i = 0; i < n; ++i) {
      wanted[i] = gradient_.wants_dx(int32_t(i));
      given[i] = HasDy(int32_t(i));
    }
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t o = 0; o < n; ++o) {
        for (size_t i = 0; i < n; ++i) {
          if (!on[o][i] || !HasGradient(loop->body->result_type(o))) continue;
          if (wanted[i] && !wanted[o]) wanted[o] = changed = true;
          if (given[o] && !given[i]) given[i] = changed = true;
        }
      }
    }
    loop->varies.resize(n);
    for (size_t i = 0; i < n; ++i) {
      const bool handle = loop->body->arg_type(i) == TW_RESOURCE;
      loop->varies[i] = wanted[i] && given[i] && (handle || HasGradient(loop->body->arg_type(i)));
      if (loop->varies[i] && handle && !Unchanged(*loop->body, i)) {
        return Unimplemented("loop variable ", i, " is a handle that changes from iteration to iteration; it has no gradient");
      }
    }
    return Status();
  }

  // The loop with a count and a list for each stored value.
  StatusOr<const Node*> ForwardLoop(const Loop& loop, const Differentiated& d) {
    Graph* g = &d.graph();
    std::vector<Edge> args = d.args(), results = d.results(), more_inputs;
    ASSIGN_OR_RETURN(args.emplace_back(), Placeholder(g, TW_INT32, Shape(std::vector<int64_t>{}), "count"));
    ASSIGN_OR_RETURN(results.emplace_back(), AddTo(g, args.back(), 1, *node_));
    ASSIGN_OR_RETURN(more_inputs.emplace_back(), AddScalar(graph_, 0, *node_));
    for (const Edge& e : loop.stored) {
      ASSIGN_OR_RETURN(args.emplace_back(), Placeholder(g, TW_VARIANT, Shape(std::vector<int64_t>{}), "list"));
      ASSIGN_OR_RETURN(const Node* pushed, AddRole(g, "list_push", {args.back(), e}, {}, *node_));
      results.push_back({pushed, 0});
      ASSIGN_OR_RETURN(more_inputs.emplace_back(), NewList(graph_, TypeOf(e)));
    }
    std::map<std::string, AttrValue> changed;
    ASSIGN_OR_RETURN(const std::string body, AddFunction(loop.body->name() + "_forward", d.shared_graph(), args, results, d.targets()));
    changed["body"] = AttrValue::Func(body);

    std::shared_ptr<Graph> cond = Graph::Body(*graph_);
    Copied copied;
    RETURN_IF_ERROR(CopyNodes(loop.cond->body(), cond.get(), &copied));
    std::vector<Edge> cond_args, answer;
    std::vector<const Node*> targets;
    for (const Edge& e : loop.cond->args()) cond_args.push_back(copied.Find(e));
    for (size_t i = cond_args.size(); i < args.size(); ++i) {
      ASSIGN_OR_RETURN(cond_args.emplace_back(), cond->AddArgument(args[i], cond->UniqueName("more")));
    }
    for (const Edge& e : loop.cond->results()) answer.push_back(copied.Find(e));
    for (const Node* t : loop.cond->targets()) targets.push_back(copied.Find(t));
    ASSIGN_OR_RETURN(const std::string cond_name, AddFunction(loop.cond->name() + "_forward", cond, cond_args, answer, targets));
    changed["cond"] = AttrValue::Func(cond_name);
    if (const auto stated = node_->FindAttr("output_shapes")->shapes(); !stated.empty()) {
      std::vector<Shape> shapes(stated.begin(), stated.end());
      shapes.resize(shapes.size() + more_inputs.size(), Shape(std::vector<int64_t>{}));
      changed["output_shapes"] = AttrValue::Shapes(std::move(shapes));
    }
    return Extended(std::move(more_inputs), std::move(changed));
  }

  // Arguments of the backward loop: the count, the gradients, the lists, what does not change.
  Status BackwardLoop(const Loop& loop, const Differentiated& d, const Node& forward) {
    std::shared_ptr<Graph> body = Graph::Body(*graph_);
    Graph* g = body.get();
    Copied copied;
    const size_t n = loop.varies.size();
    std::vector<Edge> in = {{&forward, int32_t(n)}}, args, results;
    ASSIGN_OR_RETURN(args.emplace_back(), Placeholder(g, TW_INT32, Shape(std::vector<int64_t>{}), "count"));
    ASSIGN_OR_RETURN(results.emplace_back(), AddTo(g, args[0], -1, *node_));
    std::vector<size_t> varying;
    for (size_t i = 0; i < n; ++i) {
      if (loop.varies[i]) varying.push_back(i);
    }
    for (size_t i : varying) {
      ASSIGN_OR_RETURN(in.emplace_back(), InitialGradient(int32_t(i)));
      const Edge like = d.dys()[i] ? d.dys()[i] : in.back();
      ASSIGN_OR_RETURN(args.emplace_back(), Placeholder(g, TypeOf(like), like.node->shape(like.port), "dy"));
      if (d.dys()[i]) copied.Put(d.dys()[i], args.back());
    }
    std::vector<Edge> rest;
    for (size_t j = 0; j < loop.stored.size(); ++j) {
      in.push_back({&forward, int32_t(n + 1 + j)});
      ASSIGN_OR_RETURN(args.emplace_back(), Placeholder(g, TW_VARIANT, Shape(std::vector<int64_t>{}), "list"));
      ASSIGN_OR_RETURN(const Node* popped, Pop(g, args.back(), loop.stored[j]));
      copied.Put(loop.stored[j], {popped, 1});
      rest.push_back({popped, 0});
    }
    for (size_t i : loop.unchanged) {
      in.push_back(node_->inputs()[i]);
      ASSIGN_OR_RETURN(args.emplace_back(), g->AddArgument(d.args()[i], g->UniqueName("unchanged")));
      copied.Put(d.args()[i], args.back());
      rest.push_back(args.back());
    }
    RETURN_IF_ERROR(d.CopyBackward(g, &copied));
    for (size_t k = 0; k < varying.size(); ++k) {
      ASSIGN_OR_RETURN(results.emplace_back(), NextGradient(g, d, varying[k], args[1 + k], &copied));
    }
    results.insert(results.end(), rest.begin(), rest.end());
    ASSIGN_OR_RETURN(const Node* backward, AddBackwardLoop(loop, body, std::move(in), args, results));
    for (size_t k = 0; k < varying.size(); ++k) gradient_.dx(int32_t(varying[k]), {backward, int32_t(1 + k)});
    return Status();
  }

  StatusOr<Edge> InitialGradient(int32_t i) const {
    const Edge& input = node_->inputs()[size_t(i)];
    if (i < n_given_ && (gradient_.has_dy(i) || !IsHandle(input))) return gradient_.dy(i);
    return ZerosLike(graph_, IsHandle(input) ? input : Edge{node_, i}, *node_);
  }

  StatusOr<const Node*> Pop(Graph* g, Edge list, const Edge& like) const {
    const Shape& shape = like.node->shape(like.port);
    std::vector<int32_t> dims(shape.dims().begin(), shape.dims().end());
    Tensor t;
    if (shape.has_rank()) {
      ASSIGN_OR_RETURN(t, Tensor::Vector<int32_t>(TW_INT32, dims));
    } else {
      ASSIGN_OR_RETURN(t, ScalarTensor(TW_INT32, -1));
    }
    ASSIGN_OR_RETURN(const Edge element_shape, g->AddConst(t, g->UniqueName("element_shape"), node_->place()));
    return AddRole(g, "list_pop", {list, element_shape}, {{"element_dtype", AttrValue::Type(TypeOf(like))}}, *node_);
  }

  // What arrives at variable i when the iteration begins. A variable's own gradient adds up.
  StatusOr<Edge> NextGradient(Graph* g, const Differentiated& d, size_t i, Edge dy, Copied* copied) const {
    const Edge dx = d.dxs()[i] ? copied->Find(d.dxs()[i]) : Edge();
    if (d.dys()[i]) return dx ? StatusOr<Edge>(dx) : ZerosLike(g, dy, *node_);
    if (!dx) return dy;
    ASSIGN_OR_RETURN(const Node* sum, AddRole(g, "add_n", {dy, dx}, {}, *node_));
    return Edge{sum, 0};
  }

  StatusOr<const Node*> AddBackwardLoop(const Loop& loop, std::shared_ptr<Graph> body, std::vector<Edge> in, const std::vector<Edge>& args,
                                        const std::vector<Edge>& results) {
    const bool is_stateful = IsStateful(*body);
    std::shared_ptr<Graph> cond = Graph::Body(*graph_);
    std::vector<Edge> cond_args;
    for (const Edge& e : args) {
      ASSIGN_OR_RETURN(cond_args.emplace_back(), cond->AddArgument(e, cond->UniqueName("x")));
    }
    ASSIGN_OR_RETURN(const std::string body_name, AddFunction(loop.body->name() + "_backward", std::move(body), args, results));
    ASSIGN_OR_RETURN(const std::string cond_name, AddFunction(loop.cond->name() + "_backward", cond, cond_args, {cond_args[0]}));
    ASSIGN_OR_RETURN(const OpSchema* op, Op(is_stateful));
    return thalweg::AddNode(graph_, *op, scope_ + op->name, std::move(in),
                            {{"cond", AttrValue::Func(cond_name)}, {"body", AttrValue::Func(body_name)}}, *node_);
  }

  Graph* const graph_;
  const Node* node_;  // the last that runs in the place of the node
  const std::string scope_;
  const NodeGradient& gradient_;
  std::string_view role_;  // without "stateless_"
  FunctionLibrary* library_ = nullptr;
  const int32_t n_given_;  // outputs of the node itself; what extending added has no gradient here
};

}  // namespace

Status AddFunctionGradient(Graph* graph, const Node& node, const std::string& scope, const NodeGradient& gradient) {
  return Builder(graph, node, scope, gradient).Run();
}

}  // namespace thalweg
