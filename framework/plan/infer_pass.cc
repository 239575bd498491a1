#include <algorithm>

#include "framework/base/checked.h"
#include "framework/graph/shape_inference.h"
#include "framework/plan/work_graph.h"
#include "framework/runtime/evaluate.h"

namespace thalweg {
namespace {

constexpr int64_t kSmallValue = 1024;

bool IsSmall(const Shape& s) {
  auto n = CountElements(s.dims().data(), s.rank());
  return n.ok() && *n <= kSmallValue;
}

// Nothing that reaches the node differs from what the graph knew when it was built.
bool Unchanged(const WorkGraph& w, const WorkNode& n) {
  if (!n.in.empty() && &n.node->origin() != n.node) return false;  // the graph knows references where it takes handles
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
  if (!s.ok()) return OfNode(node, Prefix(s, node.title() + ":"));
  n->shapes = std::move(answer.shapes);
  n->handles = std::move(answer.handles);
  if (node.op().stateful || node.op().once || n->in.empty() || !CanEvaluate(node.op(), node.in_at(), shapes, values)) return Status();
  for (const Shape& out : n->shapes) {
    if (out.known() && !IsSmall(out)) return Status();
  }
  // A node that fails here fails again, with its message, when it runs.
  auto known = EvaluateOnHost(w->runtime(), node, shapes, values, w->options->budget);
  if (!known.ok()) return Status();
  n->values = *std::move(known);
  for (size_t o = 0; o < n->values.size(); ++o) n->shapes[o] = n->values[o].shape();
  return Status();
}

}  // namespace

Status InferPass(WorkGraph* w) {
  for (WorkNode& n : w->nodes) {
    if (!n.node) continue;
    if (n.node->op().role == "const" || Unchanged(*w, n)) {
      n.handles = n.node->handles();
      n.shapes.reserve(n.values.size());
      for (int32_t o = 0; o < n.node->n_out(); ++o) {
        n.shapes.push_back(n.node->shape(o));
        n.values[size_t(o)] = n.node->value(o);
      }
    } else {
      RETURN_IF_ERROR(InferNode(w, &n));
    }
    if (n.open) {
      for (HandleInfo& h : n.handles) h.shape = Shape();
    }
    // What follows from a node with control inputs, if only from the shape of its output, has to wait for them too, so its node stays.
    bool waits = false;
    for (const WorkEdge& e : n.in) {
      const WorkNode& p = w->nodes[size_t(e.node)];
      n.varies = n.varies || p.varies;
      waits = waits || p.ordered;
    }
    n.ordered = waits || !n.controls.empty();
    n.constant = !n.values.empty() && !n.node->op().stateful && !waits;
    for (const Tensor& v : n.values) n.constant = n.constant && v;
    // Without optimisation only true constants stay constants; shape rules still know the other values.
    if (!w->options->optimize && n.node->op().role != "const") n.constant = false;
  }
  return Status();
}

Status FoldPass(WorkGraph* w) {
  // Larger results than shape rules want, up to what is not worth computing again in each step but not worth keeping either.
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
    // A small recipe for a large tensor (Fill, Tile) is cheaper to run than to hold.
    if (bytes > kMostBytes || (bytes > 65536 && bytes > 4 * in_bytes)) continue;
    n.values = *std::move(known);
    n.constant = true;
  }
  return Status();
}

}  // namespace thalweg
