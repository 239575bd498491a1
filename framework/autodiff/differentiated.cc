#include "framework/autodiff/differentiated.h"

#include <algorithm>
#include <set>
#include <utility>

#include "framework/autodiff/autodiff.h"
#include "framework/base/shown.h"
#include "framework/graph/flow.h"

namespace thalweg {
namespace {

// Returns true for a handle by name, which can be made again anywhere.
bool IsMadeAnywhere(const Node& n) { return n.op().once && n.inputs().empty(); }

// Returns true if the node gives the same results whenever it runs.
bool MayRepeat(const Node& n) { return !n.op().stateful && n.op().role != "placeholder" && FlowOf(n) == Flow::kNone; }

// Copies a value that needs no capture.
Status CopyKnown(const Edge& e, Graph* to, Copied* copied) {
  if (copied->Find(e)) return Status();
  if (const Tensor& known = e.node->value(e.port)) {
    ASSIGN_OR_RETURN(const Edge constant, to->AddConst(known, to->UniqueName(e.node->name()), e.node->place()));
    copied->Put(e, constant);
    return Status();
  }
  return IsMadeAnywhere(*e.node) ? CopyNode(*e.node, to, copied).status() : Internal("'", Shown(e.text()), "' was not captured");
}

// The functions under differentiation on this thread, each nested in the one before it.
class UnderWay {
 public:
  explicit UnderWay(const Function* f) : f_(f), around_(innermost_) {
    for (const UnderWay* u = around_; u && !again_; u = u->around_) again_ = u->f_ == f;
    innermost_ = this;
  }
  ~UnderWay() { innermost_ = around_; }
  UnderWay(const UnderWay&) = delete;
  UnderWay& operator=(const UnderWay&) = delete;
  bool again() const { return again_; }

 private:
  static thread_local const UnderWay* innermost_;
  const Function* const f_;
  const UnderWay* const around_;
  bool again_ = false;
};
thread_local const UnderWay* UnderWay::innermost_ = nullptr;

}  // namespace

StatusOr<Differentiated> Differentiated::Make(std::shared_ptr<const Function> f, const Mask& has_dy, const Mask& wants_dx,
                                              const Keeping& keeping) {
  const UnderWay entered(f.get());
  if (entered.again()) {
    return Unimplemented("function '", Shown(f->name()),
                         "' calls itself; a function without end has no gradient that is a graph: write the ",
                         "recursion as a loop (While)");
  }
  Differentiated d(std::move(f));
  RETURN_IF_ERROR(d.Build(has_dy, wants_dx, keeping));
  return d;
}

Status Differentiated::Build(const Mask& has_dy, const Mask& wants_dx, const Keeping& keeping) {
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
  Keeping inside = keeping;
  inside.inside = keeping.recompute;
  RETURN_IF_ERROR(AddGradients(graph_.get(), ys, dys, xs, &gradients, {}, inside));
  for (size_t k = 0; k < of.size(); ++k) {
    if (!gradients[k].values) continue;
    ASSIGN_OR_RETURN(dxs_[of[k]], Densify(graph_.get(), gradients[k], xs[k], ""));
  }
  Split(Forward(n_forward, keeping.recompute));
  return Status();
}

// Returns the forward part: the function's own nodes, the nodes that run in their place, and the
// inputs of both. Recomputed nodes belong to the backward part as well.
std::unordered_set<const Node*> Differentiated::Forward(int32_t n_forward, bool recompute) const {
  std::unordered_set<const Node*> forward;
  std::vector<const Node*> todo;
  const auto add = [&](const Node* first) {
    for (const Node* n = first; n; n = graph_->ExtendedBy(n)) todo.push_back(n);
  };
  for (int32_t id = 0; id < n_forward; ++id) {
    const Node* n = graph_->node(id);
    add(n);
    for (int32_t o = 0; graph_->has_replaced() && o < n->n_out(); ++o) add(graph_->ReplacedBy({n, o}).node);
  }
  while (!todo.empty()) {
    const Node* n = todo.back();
    todo.pop_back();
    if (!forward.insert(n).second) continue;
    for (const Edge& e : n->inputs()) todo.push_back(e.node);
  }
  if (recompute) std::erase_if(forward, [](const Node* n) { return MayRepeat(*n); });
  return forward;
}

void Differentiated::Split(const std::unordered_set<const Node*>& forward) {
  std::vector<const Node*> todo;
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

void Differentiated::Capture(const Edge& e, const std::unordered_set<const Node*>& forward) {
  if (!forward.count(e.node) || e.node->value(e.port) || IsMadeAnywhere(*e.node)) return;
  const bool is_argument = std::find(args_.begin(), args_.end(), e) != args_.end();
  std::vector<Edge>& to = is_argument ? used_args_ : captures_;
  if (std::find(to.begin(), to.end(), e) == to.end()) to.push_back(e);
}

Status Differentiated::CopyBackward(Graph* to, Copied* copied) const {
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

// Repeats until nothing changes, since a value that comes round in a loop is known only in the
// second pass.
std::vector<Mask> Dependencies(const Function& f) {
  std::vector<Mask> on(size_t(f.body().size()), Mask(f.args().size()));
  for (size_t i = 0; i < f.args().size(); ++i) on[size_t(f.args()[i].node->id())][i] = 1;
  bool grown = true;
  const auto take = [&](Mask* mine, const Node* of) {
    const Mask& theirs = on[size_t(of->id())];
    for (size_t i = 0; i < mine->size(); ++i) {
      grown = grown || (theirs[i] && !(*mine)[i]);
      (*mine)[i] |= theirs[i];
    }
  };
  while (std::exchange(grown, false)) {
    for (size_t id = 0; id < on.size(); ++id) {
      const Node* n = f.body().node(int32_t(id));
      for (int32_t k = 0; k < n->n_in(); ++k) {
        take(&on[id], n->inputs()[size_t(k)].node);
        if (const Node* back = n->back(k)) take(&on[id], back);
      }
    }
  }
  std::vector<Mask> rows;
  for (const Edge& e : f.results()) rows.push_back(on[size_t(e.node->id())]);
  return rows;
}

}  // namespace thalweg
