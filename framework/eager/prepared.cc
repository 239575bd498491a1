#include "framework/eager/prepared.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "framework/autodiff/autodiff.h"
#include "framework/graph/graph.h"
#include "framework/runtime/devices/device.h"
#include "framework/runtime/runtime.h"
#include "framework/runtime/state/resource.h"
#include "framework/runtime/step/step.h"
#include "framework/session/session.h"

namespace thalweg {
namespace {

std::vector<size_t> EachOnce(const std::vector<Edge>& in) {
  std::vector<size_t> once;
  for (size_t i = 0; i < in.size(); ++i) {
    if (std::find(in.begin(), in.begin() + std::ptrdiff_t(i), in[i]) == in.begin() + std::ptrdiff_t(i)) once.push_back(i);
  }
  return once;
}

// Returns true if no node between the inputs and the outputs has state, such as variables or random
// generators.
bool RunsNoState(const Prepared::Parts& parts) {
  if (!parts.targets.empty()) return false;
  std::unordered_set<const Node*> seen;
  for (const Edge& e : parts.in) seen.insert(e.node);
  std::vector<const Node*> todo;
  for (const Edge& e : parts.out) todo.push_back(e.node);
  while (!todo.empty()) {
    const Node* n = todo.back();
    todo.pop_back();
    if (!seen.insert(n).second) continue;
    if (n->op().stateful || n->op().once) return false;
    for (const Edge& e : n->inputs()) todo.push_back(e.node);
    todo.insert(todo.end(), n->controls().begin(), n->controls().end());
  }
  return true;
}

// Returns the device that a variable is on; NULL for host memory, for a variable without contents and
// for a tensor that is no handle of a variable.
Device* HomeOfVariable(const Tensor& t) {
  if (t.dtype() != TW_RESOURCE || t.count() != 1) return nullptr;
  const auto* r = dynamic_cast<const Resource*>(t.as<Handle*>()[0]);
  Device* device = r ? r->device() : nullptr;
  return device && !device->host_memory() ? device : nullptr;
}

// Returns true if the tensor is or was in device memory, or is a handle of a variable there. This
// cheap test decides whether RunFed looks up the exact devices.
bool MayLieOnDevice(const Tensor& t) {
  if (t.dtype() == TW_RESOURCE) return HomeOfVariable(t) != nullptr;
  const Buffer* buffer = t.get()->buffer;
  const MemoryPool* home = buffer ? buffer->home() : nullptr;
  return home && home->place();
}

StatusOr<Edge> AddPlaceholder(Graph* graph, std::string_view name, uint32_t dtype, const Shape& shape) {
  ASSIGN_OR_RETURN(const OpSchema* op, graph->host().FindRole("placeholder"));
  NodeSpec spec;
  spec.op = op->name;
  spec.name = graph->UniqueName(name);
  spec.attrs["dtype"] = AttrValue::Type(dtype);
  spec.attrs["shape"] = AttrValue::OfShape(shape);
  ASSIGN_OR_RETURN(const Node* n, graph->AddNode(std::move(spec)));
  return Edge{n, 0};
}

// Returns true if gradients may take the tensor as a constant. A scalar in device memory is left out,
// because reading it would cost a copy.
bool IsWholeScalar(const Tensor& t) { return (t.dtype() == TW_INT32 || t.dtype() == TW_INT64) && t.rank() == 0 && LiesOnHost(*t.get()); }

// Returns the shapes and integer scalars of the inputs, as bytes.
std::string FixedKey(const Tensor* in, size_t n) {
  std::string key;
  for (size_t i = 0; i < n; ++i) {
    const tw_view& v = in[i].view();
    key.append(reinterpret_cast<const char*>(&v.rank), sizeof v.rank);
    if (v.rank > 0) key.append(reinterpret_cast<const char*>(v.dims), size_t(v.rank) * sizeof(int64_t));
    if (IsWholeScalar(in[i])) key.append(static_cast<const char*>(in[i].data()), size_t(v.bytes));
  }
  return key;
}

}  // namespace

Prepared::Prepared(Session* session, std::mutex* differentiating, Parts parts)
    : session_(session),
      differentiating_(differentiating),
      parts_(std::move(parts)),
      may_repeat_(RunsNoState(parts_)),
      feeds_(EachOnce(parts_.in)),
      on_host_(session, Spec()) {}
Prepared::~Prepared() = default;

CallableSpec Prepared::Spec() const {
  CallableSpec spec;
  for (size_t i : feeds_) spec.feeds.push_back(parts_.in[i]);
  spec.fetches = parts_.out;
  spec.targets = parts_.targets;
  spec.stays = true;
  return spec;
}

Status Prepared::Run(const Tensor* in, Tensor* out) {
  if (feeds_.size() == parts_.in.size()) return RunFed(in, out);
  std::vector<Tensor> fed;
  for (size_t i : feeds_) fed.push_back(in[i]);
  return RunFed(fed.data(), out);
}

Status Prepared::RunFed(const Tensor* fed, Tensor* out) {
  const bool away = std::any_of(fed, fed + feeds_.size(), MayLieOnDevice);
  return (away ? CallableFor(fed) : &on_host_)->Run(fed, RunOptions(), out);
}

Callable* Prepared::CallableFor(const Tensor* fed) {
  std::vector<Device*> where(feeds_.size());
  Device* near = nullptr;
  for (size_t i = 0; i < where.size(); ++i) {
    where[i] = HoldingDevice(*fed[i].get());
    if (where[i] && where[i]->host_memory()) where[i] = nullptr;
    // An op on a variable runs on the variable's device, whatever device its other inputs are on.
    if (Device* home = HomeOfVariable(fed[i])) near = home;
  }
  for (size_t i = 0; i < where.size() && !near; ++i) near = where[i];
  if (!near) return &on_host_;
  std::lock_guard lock(mu_);
  std::unique_ptr<Callable>& callable = on_devices_[{near, where}];
  if (!callable) {
    CallableSpec spec = Spec();
    spec.feed_devices = where;
    spec.near = near->name();
    callable = std::make_unique<Callable>(session_, std::move(spec));
  }
  return callable.get();
}

StatusOr<PreparedGradient*> Prepared::Gradient(const GradientForm& form, const Tensor* in) {
  std::lock_guard lock(mu_);
  if (parts_.op) {
    ASSIGN_OR_RETURN(PreparedGradient * fixed, FixedGradient(form, in));
    if (fixed) return fixed;
  }
  auto it = gradients_.find(form);
  if (it == gradients_.end()) {
    std::lock_guard differentiating(*differentiating_);
    ASSIGN_OR_RETURN(auto made, MakeGradient(parts_, form));
    it = gradients_.emplace(form, std::move(made)).first;
  }
  return it->second.get();
}

// REQUIRES: mu_ is held. Returns NULL if kMostFixed others are kept already.
StatusOr<PreparedGradient*> Prepared::FixedGradient(const GradientForm& form, const Tensor* in) {
  const std::pair key(FixedKey(in, parts_.in.size()), form);
  auto it = fixed_gradients_.find(key);
  if (it != fixed_gradients_.end()) return it->second.get();
  if (fixed_.size() >= kMostFixed && !fixed_.count(key.first)) return static_cast<PreparedGradient*>(nullptr);
  std::lock_guard differentiating(*differentiating_);
  auto parts = fixed_.find(key.first);
  if (parts == fixed_.end()) {
    ASSIGN_OR_RETURN(Parts made, FixedParts(in));
    parts = fixed_.emplace(key.first, std::move(made)).first;
  }
  ASSIGN_OR_RETURN(auto made, MakeGradient(parts->second, form));
  return fixed_gradients_.emplace(key, std::move(made)).first->second.get();
}

StatusOr<Prepared::Parts> Prepared::FixedParts(const Tensor* in) {
  Graph* graph = &session_->graph();
  const Node& op = *parts_.op;
  Parts parts;
  NodeSpec spec;
  spec.name = graph->UniqueName(op.name());
  spec.device = op.device();
  for (size_t i = 0; i < parts_.in.size(); ++i) {
    ASSIGN_OR_RETURN(parts.in.emplace_back(), AddPlaceholder(graph, "input", in[i].dtype(), in[i].shape()));
    spec.inputs.push_back(parts.in.back());
    if (!IsWholeScalar(in[i])) continue;
    ASSIGN_OR_RETURN(Tensor scalar, in[i].Clone());
    ASSIGN_OR_RETURN(spec.inputs.back(), graph->AddConst(scalar));
  }
  ASSIGN_OR_RETURN(const Node* node, graph->AddNode(op.op(), op.attrs(), std::move(spec)));
  for (int32_t o = 0; o < node->n_out(); ++o) parts.out.push_back({node, o});
  return parts;
}

StatusOr<std::unique_ptr<PreparedGradient>> Prepared::MakeGradient(const Parts& of, const GradientForm& form) {
  Graph* graph = &session_->graph();
  Parts parts;
  parts.in = of.in;
  parts.in.insert(parts.in.end(), of.out.begin(), of.out.end());
  std::vector<Edge> ys, xs;
  std::vector<thalweg::Gradient> dys;
  for (size_t o = 0; o < form.dy.size(); ++o) {
    if (form.dy[o] == 0) continue;
    const Edge& y = of.out[o];
    const bool sparse = form.dy[o] != GradientForm::kDense;
    thalweg::Gradient dy;
    ASSIGN_OR_RETURN(dy.values, AddPlaceholder(graph, "gradient", out_type(o), sparse ? Shape() : y.node->shape(y.port)));
    parts.in.push_back(dy.values);
    if (sparse) {
      ASSIGN_OR_RETURN(dy.rows, AddPlaceholder(graph, "rows", form.dy[o], Shape()));
      parts.in.push_back(dy.rows);
    }
    ys.push_back(y);
    dys.push_back(dy);
  }
  for (size_t i = 0; i < form.wanted.size(); ++i) {
    if (form.wanted[i]) xs.push_back(of.in[i]);
  }
  // Every input counts as independent, even if the graph computes it from another input.
  std::vector<thalweg::Gradient> dxs;
  RETURN_IF_ERROR(AddGradientsGiven(graph, ys, dys, xs, &dxs, of.in));
  auto made = std::make_unique<PreparedGradient>();
  for (const thalweg::Gradient& dx : dxs) {
    PreparedGradient::Result r;
    const auto add = [&](const Edge& e) {
      parts.out.push_back(e);
      return int32_t(parts.out.size() - 1);
    };
    if (dx.values) r.values = add(dx.values);
    if (dx.values && dx.sparse()) r.rows = add(dx.rows);
    made->dx.push_back(r);
  }
  if (!parts.out.empty()) made->run = std::make_unique<Prepared>(session_, differentiating_, std::move(parts));
  return made;
}

}  // namespace thalweg
