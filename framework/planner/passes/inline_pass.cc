// Replaces calls of functions by the functions' nodes. A function is inlined if its nodes have
// neither effects nor control flow, call no function that stays a call, and read all arguments; so
// exactly the same nodes run as before. If and Case are calls if their choice is known. Values and
// messages do not change; WorkNode::within tells the calls that a node came from.
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <unordered_set>
#include <utility>

#include "framework/base/dtype.h"
#include "framework/base/shown.h"
#include "framework/graph/function.h"
#include "framework/graph/function_shapes.h"
#include "framework/graph/node_marks.h"
#include "framework/planner/work_graph.h"

namespace thalweg {
namespace {

// A short graph with many calls must not grow without limit.
constexpr size_t kMostNodes = 10000;

// The values of a node's inputs, as far as they are known.
using Known = std::vector<const Tensor*>;

// Returns whether a condition holds; -1 if `t` is no known condition.
int32_t Truth(const Tensor* t) {
  if (!t || !*t || t->shape().rank() != 0) return -1;
  switch (t->dtype()) {
    case TW_BOOL: return *static_cast<const uint8_t*>(t->data()) != 0;
    case TW_INT32: return *static_cast<const int32_t*>(t->data()) != 0;
    case TW_FLOAT: return *static_cast<const float*>(t->data()) != 0;
    default: return -1;
  }
}

// Returns the function that the node is sure to call; "" if there is none.
std::string Called(const Node& n, const Known& known) {
  const std::string_view role = n.op().stateful ? std::string_view() : CallRole(n.op());
  if (role == "call") return n.FindAttr("f")->strings()[0];
  if (role == "if") {
    const int32_t yes = Truth(known[0]);
    return yes < 0 ? "" : n.FindAttr(yes ? "then_branch" : "else_branch")->strings()[0];
  }
  if (role != "case" || !known[0] || !*known[0] || known[0]->dtype() != TW_INT32 || known[0]->shape().rank() != 0) return "";
  const auto& all = n.FindAttr("branches")->strings();
  const int32_t i = *static_cast<const int32_t*>(known[0]->data());
  return i >= 0 && size_t(i) < all.size() ? all[size_t(i)] : all.back();
}

int32_t FirstArgument(const Node& n) { return CallRole(n.op()) == "call" ? 0 : 1; }

Known KnownOf(const Node& n) {
  Known known;
  for (const Edge& e : n.inputs()) known.push_back(&e.node->value(e.port));
  return known;
}

// The nodes of a function that run in place of a call.
struct Body {
  std::shared_ptr<const Function> function;
  std::vector<const Node*> nodes;  // in order, without arguments
  int32_t height = 0;              // depth of nested calls; 0 if it stays a call
  size_t size = 0;                 // number of nodes after all inlining
};

class Bodies {
 public:
  explicit Bodies(FunctionLibrary* library) : library_(library) {}

  const Body& Of(const std::string& name) {
    auto [at, is_new] = all_.try_emplace(name);
    if (!is_new) return at->second;  // a function that is found again on the way calls itself: its height is still 0 then
    ++depth_;
    if (depth_ <= kMostInlined) Fill(name, &at->second);
    --depth_;
    return at->second;
  }

 private:
  void Fill(const std::string& name, Body* body) {
    auto f = library_->Find(name);
    if (!f.ok() || !(*f)->targets().empty()) return;
    body->function = *f;
    int32_t height = 1;
    std::unordered_set<const Node*> seen;
    std::vector<const Node*> todo;
    for (const Edge& e : (*f)->results()) todo.push_back(e.node);
    while (!todo.empty()) {
      const Node* n = todo.back();
      todo.pop_back();
      if (!seen.insert(n).second) continue;
      if (n->op().role == "placeholder") continue;
      if (!MayBeInlined(*n)) return;
      if (CallsFunctions(n->op())) {
        const bool may = n->controls().empty() && n->device().empty() && !IsMarked(*n, kNoInlineAttr);
        const std::string called = may ? Called(*n, KnownOf(*n)) : "";
        if (called.empty() || Of(called).height == 0) return;
        height = std::max(height, Of(called).height + 1);
        body->size += Of(called).size;
        if (body->size > kMostNodes) return;
      }
      body->nodes.push_back(n);
      for (const Edge& e : n->inputs()) todo.push_back(e.node);
      todo.insert(todo.end(), n->controls().begin(), n->controls().end());
    }
    for (const Edge& e : (*f)->args()) {
      if (!seen.count(e.node)) return;
    }
    std::sort(body->nodes.begin(), body->nodes.end(), [](const Node* a, const Node* b) { return a->id() < b->id(); });
    body->size += body->nodes.size();
    body->height = height > kMostInlined ? 0 : height;
  }

  static bool MayBeInlined(const Node& n) {
    return !n.op().stateful && !n.op().once && !n.runs_as() && FlowOf(n.op()) == Flow::kNone && n.colocate_with().empty();
  }

  FunctionLibrary* library_;
  std::map<std::string, Body> all_;
  int32_t depth_ = 0;
};

// Returns true if every value of shape s satisfies `wide`.
bool Holds(const Shape& wide, const Shape& s) {
  if (!wide.has_rank()) return true;
  if (!s.has_rank() || s.rank() != wide.rank()) return false;
  for (int32_t k = 0; k < s.rank(); ++k) {
    if (wide.dim(k) >= 0 && wide.dim(k) != s.dim(k)) return false;
  }
  return true;
}

class Inliner {
 public:
  Inliner(WorkGraph* w, FunctionLibrary* library) : w_(*w), bodies_(library) {}

  void Run() {
    std::vector<WorkNode> old;
    std::swap(old, w_.nodes);
    for (const WorkNode& n : old) nodes_.push_back(n.node);
    outputs_.resize(old.size());
    over_.resize(old.size());
    for (size_t i = 0; i < old.size(); ++i) {
      WorkNode& x = old[i];
      const Body* body = x.node && x.controls.empty() ? BodyOf(x) : nullptr;
      for (WorkEdge& e : x.in) e = Now(e);
      std::vector<int32_t> controls;
      for (int32_t c : x.controls) controls.insert(controls.end(), over_[size_t(c)].begin(), over_[size_t(c)].end());
      x.controls = std::move(controls);
      if (body) {
        const std::string within = StrCat(x.node->title(), ": function '", Shown(body->function->name()), "': ");
        outputs_[i] = Expand(*body, {x.in.begin() + FirstArgument(*x.node), x.in.end()}, within);
        for (const WorkEdge& e : outputs_[i]) over_[i].push_back(e.node);
      } else {
        outputs_[i] = Push(std::move(x));
        over_[i] = {outputs_[i].empty() ? int32_t(w_.nodes.size()) - 1 : outputs_[i][0].node};
      }
    }
    for (int32_t& f : w_.feeds) f = f < 0 ? f : over_[size_t(f)][0];
    for (WorkEdge& e : w_.fetches) e = Now(e);
    std::vector<int32_t> targets;
    for (int32_t t : w_.targets) targets.insert(targets.end(), over_[size_t(t)].begin(), over_[size_t(t)].end());
    w_.targets = std::move(targets);
  }

  static bool MayInline(const WorkGraph& w) {
    return std::any_of(w.nodes.begin(), w.nodes.end(),
                       [](const WorkNode& n) { return n.node && !n.node->op().stateful && CallsFunctions(n.node->op()); });
  }

 private:
  WorkEdge Now(const WorkEdge& e) const { return outputs_[size_t(e.node)][size_t(e.port)]; }

  std::vector<WorkEdge> Push(WorkNode n) {
    std::vector<WorkEdge> outputs;
    for (size_t o = 0; o < n.out_types.size(); ++o) outputs.push_back({int32_t(w_.nodes.size()), int32_t(o)});
    w_.nodes.push_back(std::move(n));
    return outputs;
  }

  // Returns the body that replaces the call; NULL if the call stays.
  const Body* BodyOf(const WorkNode& x) {
    if (!CallsFunctions(x.node->op()) || x.node->n_out() == 0 || !x.node->device().empty()) return nullptr;
    if (IsMarked(*x.node, kNoInlineAttr)) return nullptr;
    Known known;
    for (size_t i = 0; i < x.in.size(); ++i) {
      const Edge& e = x.node->inputs()[i];
      const bool fed = nodes_[size_t(x.in[i].node)] != e.node;
      known.push_back(fed ? nullptr : &e.node->value(e.port));
    }
    const std::string name = Called(*x.node, known);
    if (name.empty()) return nullptr;
    const Body& body = bodies_.Of(name);
    if (body.height == 0 || added_ + body.size > kMostNodes || !Fits(*body.function, *x.node)) return nullptr;
    return &body;
  }

  // Returns true if the arguments certainly fit the function.
  static bool Fits(const Function& f, const Node& call) {
    const int32_t first = FirstArgument(call);
    if (int32_t(f.args().size()) != call.n_in() - first || int32_t(f.results().size()) != call.n_out()) return false;
    for (size_t i = 0; i < f.args().size(); ++i) {
      const Edge& e = call.inputs()[size_t(first) + i];
      if (f.arg_type(i) != BaseType(e.node->out_type(e.port)) || !Holds(f.args()[i].node->shape(0), e.node->shape(e.port))) return false;
    }
    for (size_t o = 0; o < f.results().size(); ++o) {
      if (f.result_type(o) != call.out_type(int32_t(o))) return false;
    }
    return true;
  }

  std::vector<WorkEdge> Expand(const Body& body, const std::vector<WorkEdge>& args, const std::string& within) {
    std::map<const Node*, std::vector<WorkEdge>> made;
    const Function& f = *body.function;
    for (size_t i = 0; i < args.size(); ++i) made[f.args()[i].node] = {args[i]};
    for (const Node* n : body.nodes) {
      std::vector<WorkEdge> in;
      for (const Edge& e : n->inputs()) in.push_back(made.at(e.node)[size_t(e.port)]);
      if (CallsFunctions(n->op())) {
        const Body& inner = bodies_.Of(Called(*n, KnownOf(*n)));
        in.erase(in.begin(), in.begin() + FirstArgument(*n));
        made[n] = Expand(inner, in, StrCat(within, n->title(), ": function '", Shown(inner.function->name()), "': "));
        continue;
      }
      WorkNode x;
      x.node = n;
      x.in = std::move(in);
      for (const Node* c : n->controls()) {
        for (const WorkEdge& e : made.at(c)) x.controls.push_back(e.node);
      }
      x.out_types.assign(n->types().begin() + n->n_in(), n->types().end());
      x.values.resize(size_t(n->n_out()));
      x.within = within;
      made[n] = Push(std::move(x));
      ++added_;
    }
    std::vector<WorkEdge> results;
    for (const Edge& e : f.results()) results.push_back(made.at(e.node)[size_t(e.port)]);
    return results;
  }

  WorkGraph& w_;
  Bodies bodies_;
  size_t added_ = 0;
  std::vector<const Node*> nodes_;              // the nodes before inlining
  std::vector<std::vector<WorkEdge>> outputs_;  // per such node
  std::vector<std::vector<int32_t>> over_;      // per such node: the nodes whose end is its end
};

}  // namespace

Status InlinePass(WorkGraph* w) {
  const auto library = w->graph->functions();
  if (w->flow || !library || !Inliner::MayInline(*w)) return Status();
  Inliner(w, library.get()).Run();
  return GuardPass(w);  // inlined nodes may do no more here than in a function
}

}  // namespace thalweg
