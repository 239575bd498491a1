#include <algorithm>

#include "framework/base/checked.h"
#include "framework/graph/function_shapes.h"
#include "framework/graph/shape_inference.h"
#include "framework/planner/work_graph.h"
#include "framework/runtime/step/evaluate.h"

namespace thalweg {
namespace {

constexpr int64_t kSmallValue = 1024;

bool IsSmall(const Shape& s) {
  auto n = CountElements(s.dims().data(), s.rank());
  return n.ok() && *n <= kSmallValue;
}

// Returns true if the node's inputs do not differ from what the graph knew when it was built.
bool Unchanged(const WorkGraph& w, const WorkNode& n) {
  if (!n.in.empty() && &n.node->origin() != n.node) return false;  // the graph has references for inputs that are handles here
  for (size_t i = 0; i < n.in.size(); ++i) {
    const WorkNode& p = w.nodes[size_t(n.in[i].node)];
    const Edge& e = n.node->inputs()[i];
    if (!(p.shapes[size_t(n.in[i].port)] == e.node->shape(e.port))) return false;
    if (bool(p.values[size_t(n.in[i].port)]) != bool(e.node->value(e.port))) return false;
  }
  return true;
}

Status InferNode(WorkGraph* w, WorkNode* n) {
  const Node& node = *n->node;
  std::vector<tw_shape> shapes;
  std::vector<const HandleInfo*> handles;
  std::vector<Tensor> values;
  shapes.reserve(n->in.size());
  handles.reserve(n->in.size());
  values.reserve(n->in.size());
  for (const WorkEdge& e : n->in) {
    const WorkNode& p = w->nodes[size_t(e.node)];
    shapes.push_back(p.shapes[size_t(e.port)].c());
    handles.push_back(&p.handle(e.port));
    values.push_back(p.values[size_t(e.port)]);
  }
  ShapeAnswer answer;
  Status s = InferShapes(node, shapes, values, handles, &answer);
  if (!s.ok()) return OfNode(node, Prefix(s, StrCat(n->within, node.title(), ":")));
  n->shapes = std::move(answer.shapes);
  n->handles = std::move(answer.handles);
  for (int32_t o = 0; CallsFunctions(node.op()) && o < node.n_out(); ++o) {  // the rule does not know the shapes of the functions
    auto both = MergeShapes(n->shapes[size_t(o)], node.shape(o));
    if (both.ok()) n->shapes[size_t(o)] = *std::move(both);
  }
  if (node.op().stateful || node.op().once || n->in.empty() || !CanEvaluate(node.op(), node.in_at(), shapes, values)) return Status();
  for (const Shape& out : n->shapes) {
    if (out.known() && !IsSmall(out)) return Status();
  }
  // A node that fails here fails again when it runs, and then reports the error.
  auto known = EvaluateOnHost(w->runtime(), node, shapes, values, w->options->budget);
  if (!known.ok()) return Status();
  n->values = *std::move(known);
  for (size_t o = 0; o < n->values.size(); ++o) n->shapes[o] = n->values[o].shape();
  return Status();
}

// Copies the results that the graph knows, or infers them from the shapes and values of the inputs.
Status InferOne(WorkGraph* w, WorkNode* n) {
  if (n->node->op().role != "const" && !Unchanged(*w, *n)) return InferNode(w, n);
  n->handles = n->node->handles();
  n->shapes.clear();
  n->shapes.reserve(n->values.size());
  for (int32_t o = 0; o < n->node->n_out(); ++o) {
    n->shapes.push_back(n->node->shape(o));
    n->values[size_t(o)] = n->node->value(o);
  }
  return Status();
}

void MarkConstant(const WorkGraph& w, WorkNode* n) {
  if (n->open) {
    for (HandleInfo& h : n->handles) h.shape = Shape();
  }
  // A value that follows from a node with control inputs, even from the shape of its output, must
  // wait for these inputs too, so its node stays. A value inside a branch or a loop exists only if
  // that runs.
  bool waits = n->flow != Flow::kNone || (w.flow && n->node->op().role == "recv");
  for (const WorkEdge& e : n->in) {
    const WorkNode& p = w.nodes[size_t(e.node)];
    n->varies = n->varies || p.varies;
    waits = waits || p.ordered;
  }
  n->ordered = waits || !n->controls.empty();
  n->constant = !n->values.empty() && !n->node->op().stateful && !waits;
  for (const Tensor& v : n->values) n->constant = n->constant && v;
  // Without optimisation, and if results are checked, only true constants stay constants; shape rules
  // still see the other values.
  if ((!w.options->optimize || w.options->check != ValueCheck::kOff) && n->node->op().role != "const") n->constant = false;
}

// ---- Branches and loops ----

// Returns the dims that both shapes share.
Shape InCommon(const Shape& a, const Shape& b) {
  if (!a.has_rank() || !b.has_rank() || a.rank() != b.rank()) return Shape();
  std::vector<int64_t> dims(a.dims().begin(), a.dims().end());
  for (size_t k = 0; k < dims.size(); ++k) {
    if (dims[k] != b.dims()[k]) dims[k] = -1;
  }
  return Shape(std::move(dims));
}

// Infers a merge with a loop from the values that enter and, as far as they are known, from those
// that come round.
void InferLoop(const WorkGraph& w, WorkNode* n) {
  Shape shape;
  HandleInfo handle;
  bool first = true;
  for (size_t i = 0; i < n->in.size(); ++i) {
    if (n->back[i].node >= 0) continue;
    const WorkNode& p = w.nodes[size_t(n->in[i].node)];
    const Shape& other = p.shapes[size_t(n->in[i].port)];
    shape = first ? other : InCommon(shape, other);
    handle = first ? p.handle(n->in[i].port) : HandleInfo();
    first = false;
  }
  if (!n->shapes.empty()) {  // of the previous round
    shape = InCommon(shape, n->shapes[0]);
    if (!n->handle(0).known()) handle = HandleInfo();
  }
  n->shapes = {std::move(shape), Shape(std::vector<int64_t>{})};
  n->handles = {std::move(handle), HandleInfo()};
}

// If a value that comes round has another shape than was known so far, the merge drops that
// knowledge, and the shapes that depend on it are inferred again.
bool Widen(const WorkGraph& w, WorkNode* n) {
  bool widened = false;
  for (const WorkEdge& e : n->back) {
    if (e.node < 0) continue;
    const WorkNode& p = w.nodes[size_t(e.node)];
    Shape both = InCommon(n->shapes[0], p.shapes[0]);
    widened = widened || !(both == n->shapes[0]);
    n->shapes[0] = std::move(both);
    const HandleInfo& now = n->handles[0];
    if (!now.known() || (p.handle(0).dtype == now.dtype && p.handle(0).shape == now.shape)) continue;
    n->handles[0] = HandleInfo();
    widened = true;
  }
  return widened;
}

void KnowNothing(WorkNode* n) {
  n->shapes.assign(n->out_types.size(), Shape());
  n->handles.clear();
  for (Tensor& v : n->values) v.reset();
}

// Repeats until the shapes of loops hold for all their iterations. Each round makes a merge know
// less. After kMostRounds, all merges of loops know nothing, so no graph can ask for many rounds.
Status InferLoops(WorkGraph* w) {
  constexpr int kMostRounds = 8;
  bool again = true;
  for (int round = 0; again; ++round) {
    for (WorkNode& n : w->nodes) {
      if (!n.node) continue;
      const bool is_loop = !n.back.empty();
      for (Tensor& v : n.values) v.reset();
      Status s;
      if (is_loop) InferLoop(*w, &n);
      if (!is_loop) s = InferOne(w, &n);
      MarkConstant(*w, &n);
      // A branch that does not run may have any shapes: its nodes fail when they run.
      if (!s.ok() && !n.ordered) return s;
      if (!s.ok()) KnowNothing(&n);
    }
    again = false;
    for (WorkNode& n : w->nodes) again = (!n.back.empty() && Widen(*w, &n)) || again;
    for (WorkNode& n : w->nodes) {
      if (again && round >= kMostRounds && !n.back.empty()) KnowNothing(&n);
    }
  }
  return Status();
}

}  // namespace

Status InferPass(WorkGraph* w) {
  if (w->flow) return InferLoops(w);
  for (WorkNode& n : w->nodes) {
    if (!n.node) continue;
    RETURN_IF_ERROR(InferOne(w, &n));
    MarkConstant(*w, &n);
  }
  return Status();
}

Status InferAdded(WorkGraph* w, WorkNode* n) {
  if (n->node->op().role == "const") {
    n->values = {n->node->FindAttr("value")->tensors()[0]};
    n->shapes = {n->values[0].shape()};
  } else {
    RETURN_IF_ERROR(InferNode(w, n));
  }
  MarkConstant(*w, n);
  return Status();
}

Status FoldPass(WorkGraph* w) {
  // The limit is larger than that of shape rules: results up to this size are worth keeping instead
  // of computing them in each step.
  constexpr uint64_t kMostBytes = 16u << 20;
  for (WorkNode& n : w->nodes) {
    if (!n.node || n.constant || n.in.empty() || n.values.empty() || n.node->op().stateful || n.node->op().once) continue;
    bool ready = std::all_of(n.in.begin(), n.in.end(), [w](const WorkEdge& e) {
      const WorkNode& p = w->nodes[size_t(e.node)];
      return p.constant && !p.ordered;
    });
    for (size_t o = 0; ready && o < n.shapes.size(); ++o) {
      const Shape& s = n.shapes[o];
      auto bytes = CountBytes(s.dims().data(), s.rank(), n.out_types[o]);
      ready = s.known() && bytes.ok() && uint64_t(*bytes) <= kMostBytes;
    }
    if (!ready) continue;
    std::vector<tw_shape> shapes;
    std::vector<Tensor> values;
    uint64_t in_bytes = 0;
    for (const WorkEdge& e : n.in) {
      const WorkNode& p = w->nodes[size_t(e.node)];
      shapes.push_back(p.shapes[size_t(e.port)].c());
      values.push_back(p.values[size_t(e.port)]);
      if (values.back()) in_bytes += values.back().bytes();
    }
    auto known = EvaluateOnHost(w->runtime(), *n.node, shapes, values, w->options->budget);
    if (!known.ok()) continue;
    uint64_t bytes = 0;
    for (const Tensor& t : *known) bytes += t.bytes();
    // A small recipe for a large tensor (Fill, Tile) is cheaper to run than its result is to keep.
    if (bytes > kMostBytes || (bytes > 65536 && bytes > 4 * in_bytes)) continue;
    n.values = *std::move(known);
    n.constant = true;
  }
  return Status();
}

}  // namespace thalweg
