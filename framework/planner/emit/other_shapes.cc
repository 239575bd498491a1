// Adapts a plan to feeds of other shapes: runs the shape rules again over the work graph, once for
// nodes of one kind with inputs of the same shapes; then computes sizes and offsets. Passes,
// placement, kernels, states and order stay. The conditions that decided them are checked again; if
// one would decide differently, the plan does not fit.
#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "framework/base/checked.h"
#include "framework/base/dtype.h"
#include "framework/planner/compilers/part.h"
#include "framework/planner/emit/layout.h"
#include "framework/planner/emit/shape_source.h"
#include "framework/runtime/choose_kernel.h"
#include "framework/runtime/devices/device.h"
#include "framework/runtime/step/evaluate.h"

namespace thalweg {
namespace {

uint64_t Mix(uint64_t h, uint64_t v) { return (h ^ v) * 0x9e3779b97f4a7c15u + (h >> 29); }

uint64_t Hash(const Shape& s) {
  uint64_t h = uint64_t(uint32_t(s.rank()));
  for (int64_t d : s.dims()) h = Mix(h, uint64_t(d));
  return h;
}

}  // namespace

// Numbers shapes, with equal numbers for equal shapes, and kinds of nodes whose rules give equal
// answers.
class ShapeClasses {
 public:
  explicit ShapeClasses(const WorkGraph& w) {
    for (const WorkNode& n : w.nodes) {
      first_.push_back(int32_t(shapes_.size()));
      for (const Shape& s : n.shapes) shapes_.push_back(Number(s));
      kinds_.push_back(KindOf(w, n));
    }
  }
  // Returns the planned shape of an output of the work graph.
  int32_t shape(size_t node, int32_t port) const { return shapes_[size_t(first_[node] + port)]; }
  int32_t first(size_t node) const { return first_[node]; }
  const std::vector<int32_t>& shapes() const { return shapes_; }
  // -1: the node is the only one of its kind.
  int32_t kind(size_t node) const { return kinds_[node]; }
  size_t n_kinds() const { return samples_.size(); }
  const Shape& At(int32_t number) const { return pool_[size_t(number)]; }
  int32_t Number(const Shape& s) {
    auto [begin, end] = numbers_.equal_range(Hash(s));
    for (auto it = begin; it != end; ++it) {
      if (pool_[size_t(it->second)] == s) return it->second;
    }
    numbers_.emplace(Hash(s), int32_t(pool_.size()));
    pool_.push_back(s);
    return int32_t(pool_.size()) - 1;
  }
  // Forgets the shapes that were added after the first `n`.
  size_t count() const { return pool_.size(); }
  void Forget(size_t n) {
    for (size_t i = n; i < pool_.size(); ++i) {
      auto [begin, end] = numbers_.equal_range(Hash(pool_[i]));
      for (auto it = begin; it != end; ++it) {
        if (it->second != int32_t(i)) continue;
        numbers_.erase(it);
        break;
      }
    }
    pool_.resize(n);
  }

 private:
  static const tw_tensor* KnownInput(const WorkGraph& w, const WorkEdge& e) { return w.nodes[size_t(e.node)].values[size_t(e.port)].get(); }
  static bool Alike(const WorkGraph& w, const WorkNode& a, const WorkNode& b) {
    if (&a.node->op() != &b.node->op() || a.node->types() != b.node->types() || !(a.node->attrs() == b.node->attrs())) return false;
    if (a.node->in_at() != b.node->in_at() || a.node->out_at() != b.node->out_at()) return false;
    for (size_t i = 0; i < a.in.size(); ++i) {
      if (KnownInput(w, a.in[i]) != KnownInput(w, b.in[i])) return false;
    }
    return true;
  }
  int32_t KindOf(const WorkGraph& w, const WorkNode& n) {
    if (!n.node || !n.varies || std::any_of(n.values.begin(), n.values.end(), [](const Tensor& v) { return bool(v); })) return -1;
    uint64_t h = Mix(reinterpret_cast<uintptr_t>(&n.node->op()), n.in.size());
    for (size_t i = 0; i < n.in.size(); ++i) {
      const WorkNode& p = w.nodes[size_t(n.in[i].node)];
      const tw_tensor* known = KnownInput(w, n.in[i]);
      if ((known && p.varies) || n.node->in_type(int32_t(i)) == TW_RESOURCE) return -1;
      h = Mix(Mix(h, n.node->in_type(int32_t(i))), reinterpret_cast<uintptr_t>(known));
    }
    auto [begin, end] = by_hash_.equal_range(h);
    int looked = 0;
    for (auto it = begin; it != end && looked < 16; ++it, ++looked) {
      if (Alike(w, *samples_[size_t(it->second)], n)) return it->second;
    }
    by_hash_.emplace(h, int32_t(samples_.size()));
    samples_.push_back(&n);
    return int32_t(samples_.size()) - 1;
  }

  std::vector<int32_t> first_, shapes_, kinds_;
  std::vector<Shape> pool_;
  std::unordered_multimap<uint64_t, int32_t> numbers_, by_hash_;
  std::vector<const WorkNode*> samples_;
};

ShapeSource::ShapeSource() = default;
ShapeSource::~ShapeSource() = default;

namespace {

class Rework {
 public:
  Rework(const Plan& plan, ShapeSource* source) : p_(plan), w_(source->w), source_(*source) {
    if (!source->classes) source->classes = std::make_unique<ShapeClasses>(source->w);
    classes_ = source->classes.get();
    known_shapes_ = classes_->count();
  }
  ~Rework() { classes_->Forget(known_shapes_); }

  std::shared_ptr<const PlanShapes> Run(const std::vector<Shape>& feed_shapes) {
    now_ = classes_->shapes();
    changed_.assign(w_.nodes.size(), 0);
    answers_.resize(classes_->n_kinds());
    if (!Feed(feed_shapes)) return nullptr;
    for (size_t i = 0; i < w_.nodes.size(); ++i) {
      const WorkNode& n = w_.nodes[i];
      if (!n.node || !n.varies) continue;
      if (n.part && n.part->limited()) return nullptr;  // unknown sizes stay unknown, but their limits change
      const bool same = std::none_of(n.in.begin(), n.in.end(), [&](const WorkEdge& e) { return changed_[size_t(e.node)]; });
      if (!same && !Infer(i)) return nullptr;
    }
    for (const auto& [a, b] : w_.equal_shapes) {
      if (Now(a) != Now(b)) return nullptr;
    }
    auto shapes = std::make_shared<PlanShapes>();
    if (!Resize(shapes.get())) return nullptr;
    MarkHeavy(p_, shapes.get());
    // A plan that runs one node after the other to save memory does so for all feeds.
    const bool free = !p_.in_turn && !p_.smallest_peak;
    if (free && WantsCounts(p_, source_.options, *shapes) != p_.wants_counts) return nullptr;
    LayOut(p_, shapes.get());
    if (!FitsBudget(source_.options, *shapes)) return nullptr;
    return shapes;
  }

 private:
  // The answer of a shape rule for inputs of certain shapes.
  struct Answer {
    std::vector<int32_t> in, out;
  };

  int32_t Now(const WorkEdge& e) const { return now_[size_t(classes_->first(size_t(e.node)) + e.port)]; }
  const Shape& ShapeNow(const WorkEdge& e) const { return classes_->At(Now(e)); }
  const Tensor& ValueNow(const WorkEdge& e) const {
    auto it = values_.find(e.node);
    return it != values_.end() ? it->second[size_t(e.port)] : w_.nodes[size_t(e.node)].values[size_t(e.port)];
  }
  void Set(size_t node, int32_t port, int32_t shape) {
    int32_t& now = now_[size_t(classes_->first(node) + port)];
    if (now != shape) changed_[node] = 1;
    now = shape;
  }

  bool Feed(const std::vector<Shape>& feed_shapes) {
    for (size_t f = 0; f < w_.feeds.size(); ++f) {
      const Edge& e = source_.signature.feeds[f];
      auto shape = MergeShapes(e.node->shape(e.port), feed_shapes[f]);
      if (!shape.ok() || !shape->known()) return false;
      Set(size_t(w_.feeds[f]), 0, classes_->Number(*shape));
    }
    return true;
  }

  // A known shape must stay known, and an unknown one unknown: the plan has no other place for it.
  bool Take(size_t node, const std::vector<int32_t>& out) {
    for (size_t o = 0; o < out.size(); ++o) {
      if (classes_->At(out[o]).known() != w_.nodes[node].shapes[o].known()) return false;
      Set(node, int32_t(o), out[o]);
    }
    return true;
  }

  bool Infer(size_t i) {
    if (w_.nodes[i].part && !w_.nodes[i].part->serves_other_shapes()) return false;
    const int32_t kind = classes_->kind(i);
    if (kind < 0) {
      std::vector<int32_t> out;
      return RunRule(i, &out) && Take(i, out);
    }
    std::vector<Answer>& known = answers_[size_t(kind)];
    constexpr size_t kMost = 8;  // answers examined per node
    for (size_t k = known.size(); k-- > 0 && known.size() - k <= kMost;) {
      const std::vector<WorkEdge>& in = w_.nodes[i].in;
      bool same = true;
      for (size_t j = 0; same && j < in.size(); ++j) same = known[k].in[j] == Now(in[j]);
      if (same) return Take(i, known[k].out);
    }
    Answer answer;
    for (const WorkEdge& e : w_.nodes[i].in) answer.in.push_back(Now(e));
    if (!RunRule(i, &answer.out)) return false;
    known.push_back(std::move(answer));
    return Take(i, known.back().out);
  }

  bool RunRule(size_t i, std::vector<int32_t>* out) {
    const WorkNode& n = w_.nodes[i];
    std::vector<tw_shape> shapes;
    std::vector<const HandleInfo*> handles;
    std::vector<Tensor> values;
    for (const WorkEdge& e : n.in) {
      shapes.push_back(ShapeNow(e).c());
      handles.push_back(&w_.nodes[size_t(e.node)].handle(e.port));
      values.push_back(ValueNow(e));
    }
    ShapeAnswer answer;
    if (!InferShapes(*n.node, shapes, values, handles, &answer).ok()) return false;
    const bool has_values = std::any_of(n.values.begin(), n.values.end(), [](const Tensor& v) { return bool(v); });
    if (has_values && !Evaluate(i, shapes, values, &answer)) return false;
    if (n.kernel && n.kernel->def.fits) {  // another kernel would be chosen if it declines now
      for (const Shape& s : answer.shapes) shapes.push_back(s.c());
      if (!KernelFits(*n.kernel, *n.device, {*n.node, shapes, values}).ok()) return false;
    }
    for (const Shape& s : answer.shapes) out->push_back(classes_->Number(s));
    return true;
  }

  // Values that were known at planning time must be known again.
  bool Evaluate(size_t i, const std::vector<tw_shape>& shapes, const std::vector<Tensor>& values, ShapeAnswer* answer) {
    constexpr uint64_t kMostBytes = 16u << 20;
    const WorkNode& n = w_.nodes[i];
    if (!CanEvaluate(n.node->op(), n.node->in_at(), shapes, values)) return false;
    for (size_t o = 0; o < n.values.size(); ++o) {
      const Shape& s = answer->shapes[o];
      auto bytes = CountBytes(s.dims().data(), s.rank(), n.out_types[o]);
      if (s.known() && (!bytes.ok() || (value_bytes_ += uint64_t(*bytes)) > kMostBytes)) return false;
    }
    auto known = EvaluateOnHost(w_.runtime(), *n.node, shapes, values, source_.options.budget);
    if (!known.ok()) return false;
    for (size_t o = 0; o < known->size(); ++o) {
      answer->shapes[o] = (*known)[o].shape();
      if (!n.values[o]) (*known)[o].reset();
    }
    values_[int32_t(i)] = *std::move(known);
    changed_[i] = 1;
    return true;
  }

  // Sets the sizes of the plan's values, constants and scratch.
  bool Resize(PlanShapes* to) {
    to->values.resize(p_.values.size());
    for (size_t v = 0; v < p_.values.size(); ++v) {
      const WorkEdge& e = source_.edges[v];
      PlanShapes::Value& value = to->values[v];
      const PlanShapes::Value& planned = p_.shapes->values[v];
      const int32_t root = p_.values[v].view_of;
      const bool other_content = root >= 0 && p_.values[v].kind == PlanValue::kConst && changed_[size_t(source_.edges[size_t(root)].node)];
      if (!changed_[size_t(e.node)] && !other_content) {
        value = planned;
        value.in_place_of = -1;
        continue;
      }
      value.shape = ShapeNow(e);
      SetSizes(p_.values[v].dtype, &value);
      const auto bytes = CountBytes(value.shape.dims().data(), value.shape.rank(), p_.values[v].dtype);
      if (planned.shape.known() && !bytes.ok()) return false;
      if (p_.values[v].kind == PlanValue::kPassed && value.bytes > kMostPassed) return false;
      if (p_.values[v].kind == PlanValue::kConst && !SetConstant(v, to)) return false;
    }
    to->scratch.resize(p_.nodes.size());
    for (size_t i = 0; i < p_.nodes.size(); ++i) {
      if (!SetScratch(i, to)) return false;
    }
    return true;
  }

  bool SetConstant(size_t v, PlanShapes* to) {
    PlanShapes::Value& value = to->values[v];
    const PlanValue& planned = p_.values[v];
    if (planned.view_of >= 0) {
      auto view = to->values[size_t(planned.view_of)].constant.Reshape(value.shape.dims().data(), value.shape.rank());
      if (view.ok()) value.constant = *std::move(view);
      return view.ok();
    }
    value.constant = ValueNow(source_.edges[v]);
    if (planned.location == 0) return true;
    auto moved = p_.devices[size_t(planned.location - 1)]->FromHost(value.constant);
    if (moved.ok()) value.constant = *std::move(moved);
    return moved.ok();
  }

  bool SetScratch(size_t i, PlanShapes* to) {
    const PlanNode& n = p_.nodes[i];
    if (n.kind != PlanNode::kKernel || n.dynamic || !n.run.kernel->def.prepare) return true;
    std::vector<tw_shape> shapes;
    for (int32_t v : n.in) shapes.push_back(to->values[size_t(v)].shape.c());
    for (int32_t v : n.out) shapes.push_back(to->values[size_t(v)].shape.c());
    auto bytes = PrepareScratch(n.run, shapes);
    if (bytes.ok()) to->scratch[i].bytes = *bytes;
    return bytes.ok();
  }

  const Plan& p_;
  const WorkGraph& w_;
  const ShapeSource& source_;
  ShapeClasses* classes_;
  size_t known_shapes_;
  std::vector<int32_t> now_;      // number of each output's shape, node by node
  std::vector<uint8_t> changed_;  // per node: some shape or value differs from the planned one
  std::unordered_map<int32_t, std::vector<Tensor>> values_;
  std::vector<std::vector<Answer>> answers_;  // per kind
  uint64_t value_bytes_ = 0;
};

}  // namespace

bool MayHaveOtherShapes(const WorkGraph& w) {
  bool varies = false;
  for (int32_t f : w.feeds) {
    const WorkNode& n = w.nodes[size_t(f)];
    if (!n.shapes[0].known()) return false;  // the plan serves all shapes
    varies = varies || n.varies;
  }
  return varies;
}

void SetSizes(uint32_t dtype, PlanShapes::Value* value) {
  value->count = value->bytes = 0;
  if (!value->shape.known() || !dtype) return;
  auto count = CountElements(value->shape.dims().data(), value->shape.rank());
  auto bytes = CountBytes(value->shape.dims().data(), value->shape.rank(), dtype);
  if (!count.ok() || !bytes.ok()) return;
  value->count = uint64_t(*count);
  value->bytes = uint64_t(*bytes);
}

std::shared_ptr<const PlanShapes> OtherShapes(const Plan& plan, const std::vector<Shape>& feed_shapes) {
  return plan.source ? Rework(plan, plan.source.get()).Run(feed_shapes) : nullptr;
}

}  // namespace thalweg
