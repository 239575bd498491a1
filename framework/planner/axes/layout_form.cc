// Decides whether a node can run in another order of axes, and in which form.
#include "framework/planner/axes/layout_form.h"

#include <algorithm>

#include "framework/base/dtype.h"
#include "framework/runtime/runtime.h"

namespace thalweg {
namespace {

bool IsPlain(uint32_t dtype) {
  const DTypeInfo* info = FindDType(dtype);
  return info && info->plain;
}

size_t ArgumentOf(const std::vector<uint32_t>& at, size_t flat) {
  return size_t(std::upper_bound(at.begin(), at.end(), uint32_t(flat)) - at.begin()) - 1;
}

}  // namespace

const Tensor* SureValue(const WorkGraph& w, const WorkEdge& e) {
  const WorkNode& p = w.nodes[size_t(e.node)];
  const Tensor& value = p.values[size_t(e.port)];
  return value && !p.varies && !p.ordered && p.controls.empty() ? &value : nullptr;
}

AxisOrder OrderGiven(const WorkGraph& w, const WorkNode& n) {
  const OpAlgebra* a = n.node && !n.constant && !n.dead && !n.part && n.controls.empty() ? &n.node->op().algebra : nullptr;
  if (!a || a->permuted < 0) return {};
  const Tensor* perm = SureValue(w, n.in[size_t(a->permutation)]);
  const WorkEdge& x = n.in[size_t(a->permuted)];
  AxisOrder order = perm ? OrderOf(*perm) : AxisOrder();
  return w.nodes[size_t(x.node)].shapes[size_t(x.port)].rank() == int32_t(order.size()) ? order : AxisOrder();
}

bool TurnsOutput(const WorkNode& n, int32_t o, size_t rank) {
  const OpAxes& a = n.node->op().axes;
  if (a.elementwise) return true;
  return a.out[ArgumentOf(n.node->out_at(), size_t(o))] && n.shapes[size_t(o)].rank() == int32_t(rank);
}

bool LayoutForms::May(const WorkNode& n) const {
  const OpAxes* a = n.node ? &n.node->op().axes : nullptr;
  return a && (a->elementwise || a->ordered) && !n.dead && !n.constant && !n.part && !n.reader && !n.node->op().stateful && n.kernel &&
         n.device;
}

// The node's axis order, if it has that attribute, must be `from`.
bool LayoutForms::SetAttrs(const WorkNode& n, LayoutChoice::Form* form) const {
  const OpAxes& a = n.node->op().axes;
  if (a.format < 0 && a.lists.empty()) return true;
  form->attrs = n.node->attrs();
  if (a.format >= 0) {
    const AttrSpec& spec = n.node->op().attrs[size_t(a.format)];
    AttrValue& format = form->attrs[size_t(a.format)];
    if (format.strings()[0] != from_) return false;
    format = AttrValue::String(to_);
    if (!CheckAttr(spec, format).ok()) return false;
  }
  for (int32_t at : a.lists) {
    const auto list = form->attrs[size_t(at)].ints();
    form->attrs[size_t(at)] = AttrValue::Ints(TurnedList({list.begin(), list.end()}, order_));
  }
  return true;
}

AxisUse LayoutForms::UseOf(const WorkNode& n, size_t i) const {
  const OpAxes& a = n.node->op().axes;
  const WorkEdge& e = n.in[i];
  const WorkNode& maker = w_.nodes[size_t(e.node)];
  const Shape& s = maker.shapes[size_t(e.port)];
  const int32_t rank = int32_t(order_.size());
  if (!a.elementwise) {
    const size_t argument = ArgumentOf(n.node->in_at(), i);
    if (int32_t(argument) == a.numbers) return MayNumber(e) ? AxisUse::kNumbers : AxisUse::kCannot;
    if (!a.in[argument]) return AxisUse::kAsItIs;
    if (!s.known()) return AxisUse::kCannot;
    if (s.rank() == rank) return maker.constant && maker.ordered ? AxisUse::kCannot : AxisUse::kTurned;
    return s.rank() >= 1 && s.rank() <= 2 && s.dim(0) == rank && MayTurnRows(e) ? AxisUse::kRows : AxisUse::kCannot;
  }
  if (!s.known() || s.rank() > rank || (maker.constant && maker.ordered)) return AxisUse::kCannot;
  if (s.rank() == rank) return AxisUse::kTurned;
  if (std::all_of(s.dims().begin(), s.dims().end(), [](int64_t d) { return d == 1; })) {
    const bool stays = !maker.varies || (maker.node && maker.node->shape(e.port).known());
    return stays ? AxisUse::kAsItIs : AxisUse::kCannot;
  }
  const Tensor* sure = SureValue(w_, e);
  if (sure && maker.constant && IsPlain(sure->dtype())) return AxisUse::kWidened;
  return LiesTheSame(s) && !maker.varies ? AxisUse::kWidened : AxisUse::kCannot;
}

// Returns true if the input holds known whole numbers. If these follow from feeds, they must be the
// sizes of a value that can be turned.
bool LayoutForms::MayTurnRows(const WorkEdge& e) const {
  const WorkNode& maker = w_.nodes[size_t(e.node)];
  const uint32_t type = maker.out_types[size_t(e.port)];
  if (type != TW_INT32 && type != TW_INT64) return false;
  if (SureValue(w_, e)) return true;
  if (!maker.node || !maker.constant || maker.ordered || maker.node->op().role != "shape" || maker.in.size() != 1) return false;
  const WorkEdge& of = maker.in[0];
  const Shape& s = w_.nodes[size_t(of.node)].shapes[size_t(of.port)];
  return s.known() && s.rank() == int32_t(order_.size());
}

bool LayoutForms::MayNumber(const WorkEdge& e) const {
  const Tensor* numbers = SureValue(w_, e);
  return numbers && (numbers->dtype() == TW_INT32 || numbers->dtype() == TW_INT64) && TurnedNumbers(*numbers, order_).ok();
}

// The axes that remain after the reduction must have one order, turned or not.
bool LayoutForms::MayReduce(const WorkNode& n) const {
  const OpAxes& a = n.node->op().axes;
  if (a.keep < 0 || n.node->attrs()[size_t(a.keep)].bools()[0]) return true;
  const WorkEdge& e = n.in[n.node->in_at()[size_t(a.numbers)]];
  auto numbers = TurnedNumbers(*SureValue(w_, e), order_);
  if (!numbers.ok()) return false;
  std::vector<uint8_t> gone(order_.size(), 0);
  for (uint64_t i = 0; i < numbers->count(); ++i) {
    gone[size_t(numbers->dtype() == TW_INT64 ? numbers->as<int64_t>()[i] : numbers->as<int32_t>()[i])] = 1;
  }
  int32_t last = -1;
  for (size_t k = 0; k < order_.size(); ++k) {
    if (gone[k]) continue;
    if (order_[k] < last) return false;
    last = order_[k];
  }
  return std::find(gone.begin(), gone.end(), 1) != gone.end();
}

bool LayoutForms::CanTranspose(uint32_t dtype, const Device& device) {
  auto [known, is_new] = transposers_.try_emplace({dtype, device.kind()}, false);
  if (is_new) known->second = IsPlain(dtype) && TurningKernel(w_, transpose_, dtype, device);
  return known->second;
}

bool LayoutForms::Find(const WorkNode& n, LayoutChoice::Form* form) {
  const int32_t rank = int32_t(order_.size());
  if (!May(n) || !SetAttrs(n, form)) return false;
  bool turns = false;
  for (size_t i = 0; i < n.in.size(); ++i) {
    form->in.push_back(UseOf(n, i));
    if (form->in[i] == AxisUse::kCannot) return false;
    if (form->in[i] != AxisUse::kTurned && form->in[i] != AxisUse::kWidened) continue;
    turns = turns || form->in[i] == AxisUse::kTurned;
    if (!CanTranspose(n.node->in_type(int32_t(i)), *n.device)) return false;
  }
  if (n.node->op().axes.ordered && !MayReduce(n)) return false;
  for (int32_t o = 0; o < n.node->n_out(); ++o) {
    if (!TurnsOutput(n, o, order_.size())) continue;
    const Shape& s = n.shapes[size_t(o)];
    if (!s.known() || s.rank() != rank || !CanTranspose(n.node->out_type(o), *n.device)) return false;
    turns = true;
  }
  const Registry& registry = w_.runtime().registry();
  form->kernel = form->attrs.empty()
                     ? n.kernel
                     : registry.FindKernel(n.node->op(), n.device->kind(), n.node->types(), n.node->in_at(), n.node->out_at(), form->attrs);
  // A kernel that may decline was asked about the node as it is, not about this form of it.
  return turns && form->kernel && !form->kernel->def.fits;
}

const KernelDef* TurningKernel(const WorkGraph& w, const OpSchema& op, uint32_t dtype, const Device& device) {
  const uint32_t in[] = {dtype, TW_INT32};
  auto resolved = ResolveNode(op, in, std::vector<AttrValue>(op.attrs.size()));
  if (!resolved.ok()) return nullptr;
  const KernelDef* k = nullptr;
  do {  // only a kernel that never declines
    k = w.runtime().registry().FindKernel(op, device.kind(), resolved->types, op.in_at, op.out_at, resolved->attrs, k);
  } while (k && k->def.fits);
  return k;
}

}  // namespace thalweg
