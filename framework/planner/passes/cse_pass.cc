#include <cstring>
#include <set>
#include <string_view>
#include <unordered_map>

#include "framework/base/dtype.h"
#include "framework/planner/work_graph.h"

namespace thalweg {
namespace {

// Returns true if the tensor is worth comparing byte by byte; other tensors are equal only if they
// are the same object.
bool Comparable(const Tensor& t) {
  constexpr uint64_t kMostBytes = 4096;
  return FindDType(t.dtype())->plain && t.bytes() <= kMostBytes;
}

bool SameConstant(const WorkNode& a, const WorkNode& b) {
  if (a.values.size() != b.values.size()) return false;
  for (size_t o = 0; o < a.values.size(); ++o) {
    const Tensor &x = a.values[o], &y = b.values[o];
    if (x.get() == y.get()) continue;
    if (x.dtype() != y.dtype() || !(x.shape() == y.shape()) || !Comparable(x)) return false;
    if (x.bytes() && std::memcmp(x.data(), y.data(), x.bytes()) != 0) return false;
  }
  return true;
}

// Returns true if the node is compared by its values. A node that is constant only for these feeds
// is compared by how it is made.
bool IsValue(const WorkNode& n) { return n.constant && !n.varies; }

bool SameInputs(const WorkNode& a, const WorkNode& b) {
  if (a.in == b.in) return true;
  return a.node->op().commutative && a.in.size() == 2 && b.in.size() == 2 && a.in[0] == b.in[1] && a.in[1] == b.in[0];
}

bool SameNode(const WorkNode& a, const WorkNode& b) {
  if (IsValue(a) != IsValue(b) || !a.controls.empty() || !b.controls.empty()) return false;
  if (IsValue(a)) return SameConstant(a, b);
  return &a.node->op() == &b.node->op() && SameInputs(a, b) && a.node->attrs() == b.node->attrs() && a.node->device() == b.node->device() &&
         a.out_types == b.out_types;
}

// Limit on the nodes of equal hash that a node is compared with: a graph could consist of such
// nodes only.
constexpr int kMostAlike = 32;

uint64_t Mix(uint64_t h, uint64_t v) { return (h ^ v) * 0x9e3779b97f4a7c15u + (h >> 29); }

uint64_t Hash(const AttrValue& a) {
  uint64_t h = Mix(a.kind(), a.count());
  auto mix = [&](const auto& list) {
    for (const auto& v : list) h = Mix(h, std::hash<std::decay_t<decltype(v)>>()(v));
  };
  switch (a.kind()) {
    case TW_ATTR_INT: mix(a.ints()); break;
    case TW_ATTR_FLOAT: mix(a.floats()); break;
    case TW_ATTR_BOOL: mix(a.bools()); break;
    case TW_ATTR_STRING:
    case TW_ATTR_FUNC: mix(a.strings()); break;
    case TW_ATTR_TYPE: mix(a.types()); break;
    case TW_ATTR_SHAPE:
      for (const Shape& s : a.shapes()) {
        h = Mix(h, uint64_t(int64_t{s.rank()}));
        for (int64_t d : s.dims()) h = Mix(h, uint64_t(d));
      }
      break;
    default: break;  // tensors: by their number
  }
  return h;
}

uint64_t Hash(const WorkNode& n) {
  uint64_t h = 1;
  if (IsValue(n)) {
    for (const Tensor& t : n.values) {
      h = Mix(Mix(h, t.dtype()), t.count());
      h = Mix(h, Comparable(t) ? std::hash<std::string_view>()({static_cast<const char*>(t.data()), size_t(t.bytes())})
                               : reinterpret_cast<uintptr_t>(t.get()));
    }
    return h;
  }
  h = Mix(h, reinterpret_cast<uintptr_t>(&n.node->op()));
  for (const AttrValue& a : n.node->attrs()) h = Mix(h, Hash(a));
  auto edge = [](const WorkEdge& e) { return Mix(uint64_t(uint32_t(e.node)), uint64_t(uint32_t(e.port))); };
  if (n.node->op().commutative && n.in.size() == 2) return Mix(h, edge(n.in[0]) + edge(n.in[1]));
  for (const WorkEdge& e : n.in) h = Mix(h, edge(e));
  return h;
}

}  // namespace

Status CsePass(WorkGraph* w) {
  // Colocation goes by name, so a node that takes part in it is not merged.
  std::set<std::string_view> colocated;
  for (const WorkNode& n : w->nodes) {
    if (n.node) colocated.insert(n.node->colocate_with().begin(), n.node->colocate_with().end());
  }
  auto shares = [&](const WorkNode& n) { return !n.constant && (!n.node->colocate_with().empty() || colocated.count(n.node->name())); };
  std::vector<int32_t> twin(w->nodes.size());
  std::unordered_multimap<uint64_t, int32_t> seen;
  for (size_t i = 0; i < w->nodes.size(); ++i) {
    WorkNode& n = w->nodes[i];
    twin[i] = int32_t(i);
    for (WorkEdge& e : n.in) e.node = twin[size_t(e.node)];
    for (int32_t& c : n.controls) c = twin[size_t(c)];
    // Stateful nodes each have an effect of their own. A placeholder with a default is a node here,
    // although another signature may feed it.
    if (!n.node || n.node->op().stateful || n.node->op().once || n.values.empty() || n.flow != Flow::kNone || shares(n)) continue;
    uint64_t h = Hash(n);
    auto it = seen.find(h);
    for (int left = kMostAlike; it != seen.end() && it->first == h && left > 0; ++it, --left) {
      if (!SameNode(w->nodes[size_t(it->second)], n)) continue;
      twin[i] = it->second;
      w->notes.merged.push_back({n.node, w->nodes[size_t(it->second)].node});
      break;
    }
    if (twin[i] == int32_t(i)) seen.emplace(h, int32_t(i));
  }
  for (WorkNode& n : w->nodes) {
    for (WorkEdge& e : n.back) e.node = e.node < 0 ? e.node : twin[size_t(e.node)];
  }
  for (WorkEdge& e : w->fetches) e.node = twin[size_t(e.node)];
  for (int32_t& t : w->targets) t = twin[size_t(t)];
  return Status();
}

}  // namespace thalweg
