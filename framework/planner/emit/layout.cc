#include "framework/planner/emit/layout.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

#include "framework/graph/function_shapes.h"
#include "framework/graph/op_schema.h"
#include "framework/planner/emit/memory_plan.h"

namespace thalweg {
namespace {

// Up to this number the exact "ends before" relation is worth its n^2 bits; counted plans of more
// nodes reuse no memory across branches.
constexpr size_t kMostBatches = 4096;

class Layout {
 public:
  Layout(const Plan& plan, PlanShapes* shapes) : p_(plan), s_(*shapes), storages_(plan.devices.size() + 1) {}

  void Run() {
    ListReaders();
    if ((p_.counted && !p_.in_turn) || !p_.batches.empty()) {
      side_by_side_ = true;
      FindBefore();
    }
    s_.unplanned_bytes = 0;
    passed_bytes_ = 0;
    for (size_t v = 0; v < p_.values.size(); ++v) {
      if (p_.values[v].kind == PlanValue::kPassed && p_.values[v].view_of < 0) passed_bytes_ += Rounded(s_.values[v].bytes);
    }
    place_.assign(p_.values.size(), {-1, -1});
    for (size_t i = 0; i < p_.nodes.size(); ++i) {
      for (size_t o = 0; o < p_.nodes[i].out.size(); ++o) PlaceOutput(int32_t(i), o);
      if (s_.scratch[i].bytes) PlaceScratch(int32_t(i));
    }
    FindPeak();
    // If nothing is known to end before anything else, each value has a place of its own.
    const bool apart = side_by_side_ && !order_;
    s_.block_bytes.clear();
    for (auto& list : storages_) {
      for (Storage& s : list) {
        if (apart) s.users.push_back(INT32_MAX);
      }
      s_.block_bytes.push_back(PlanOffsets(&list, order_ ? &*order_ : nullptr));
    }
    for (size_t v = 0; v < p_.values.size(); ++v) {
      if (p_.values[v].kind == PlanValue::kBlock) s_.values[v].offset = At(place_[size_t(Root(int32_t(v)))]).offset;
    }
    PlacePassed();
    for (auto& [node, where] : scratch_) s_.scratch[size_t(node)].offset = At(where).offset;
  }

 private:
  struct Place {
    int32_t location, index;
    bool operator==(const Place&) const = default;
  };
  // A list of nodes in readers_.
  struct Slice {
    uint32_t begin = 0, end = 0;
  };
  Storage& At(const Place& p) { return storages_[size_t(p.location)][size_t(p.index)]; }
  int32_t Root(int32_t v) const { return p_.values[size_t(v)].view_of < 0 ? v : p_.values[size_t(v)].view_of; }

  // Passed values lie behind the others, in host memory, each in its own cache lines.
  static uint64_t Rounded(uint64_t bytes) { return (bytes + 63) / 64 * 64; }
  void PlacePassed() {
    uint64_t end = s_.block_bytes[0];
    s_.block_bytes[0] += passed_bytes_;
    for (size_t v = 0; v < p_.values.size(); ++v) {
      if (p_.values[v].kind != PlanValue::kPassed || p_.values[v].view_of >= 0) continue;
      s_.values[v].offset = end;
      end += Rounded(s_.values[v].bytes);
    }
    for (size_t v = 0; v < p_.values.size(); ++v) {
      if (p_.values[v].kind == PlanValue::kPassed) s_.values[v].offset = s_.values[size_t(Root(int32_t(v)))].offset;
    }
  }

  // Lists the readers of each value's memory, views included, each once and in order.
  void ListReaders() {
    std::vector<int32_t> last(p_.values.size(), -1);
    auto each = [&](auto&& f) {
      std::fill(last.begin(), last.end(), -1);
      for (size_t i = 0; i < p_.nodes.size(); ++i) {
        for (int32_t v : p_.nodes[i].in) {
          if (std::exchange(last[size_t(Root(v))], int32_t(i)) != int32_t(i)) f(size_t(Root(v)), int32_t(i));
        }
      }
    };
    slices_.assign(p_.values.size(), {});
    each([&](size_t root, int32_t) { ++slices_[root].end; });
    uint32_t at = 0;
    for (Slice& s : slices_) {
      s.begin = at;
      at += s.end;
      s.end = s.begin;
    }
    readers_.resize(at);
    each([&](size_t root, int32_t node) { readers_[slices_[root].end++] = node; });
  }

  // A plan without batches counts its nodes, so each node is a batch of its own.
  void FindBefore() {
    const size_t n = p_.batches.empty() ? p_.nodes.size() : p_.batches.size();
    if (n > kMostBatches) return;
    std::vector<std::vector<int32_t>> next;
    for (size_t b = 0; b < n; ++b) next.push_back(p_.batches.empty() ? p_.nodes[b].next : p_.batches[b].next);
    order_ = BatchOrder{.batch = std::vector<int32_t>(p_.nodes.size()), .before = FindAncestors(next)};
    std::iota(order_->batch.begin(), order_->batch.end(), 0);
    for (size_t b = 0; b < p_.batches.size(); ++b) {
      std::fill(order_->batch.begin() + p_.batches[b].begin, order_->batch.begin() + p_.batches[b].end, int32_t(b));
    }
  }
  bool Before(int32_t a, int32_t b) const {  // a has certainly ended when b starts
    if (!side_by_side_) return a < b;
    return order_ && order_->Before(a, b);
  }

  // Sets the nodes that use the storage from now on: a node, and the readers of the value that it
  // put there.
  void SetUsers(Storage* s, int32_t node, const Slice& readers) {
    s->users.clear();
    if (!side_by_side_) {
      s->users.push_back(readers.begin < readers.end ? std::max(node, readers_[readers.end - 1]) : node);
      return;
    }
    s->users.assign(readers_.begin() + readers.begin, readers_.begin() + readers.end);
    s->users.push_back(node);
  }

  void PlaceOutput(int32_t node, size_t o) {
    const int32_t v = p_.nodes[size_t(node)].out[o];
    PlanShapes::Value& value = s_.values[size_t(v)];
    if (p_.values[size_t(v)].kind != PlanValue::kBlock) return;
    s_.unplanned_bytes += value.bytes;
    value.in_place_of = InPlaceInput(node, o);
    if (value.in_place_of >= 0) {
      const size_t old = size_t(Root(value.in_place_of));
      place_[size_t(v)] = place_[old];
      // All earlier users of the memory have ended before this node, so only this node and its
      // readers count.
      SetUsers(&At(place_[size_t(v)]), node, slices_[size_t(v)]);
      return;
    }
    const int32_t location = p_.values[size_t(v)].location;
    auto& list = storages_[size_t(location)];
    place_[size_t(v)] = {location, int32_t(list.size())};
    list.emplace_back();
    list.back().bytes = value.bytes;
    list.back().first = node;
    SetUsers(&list.back(), node, slices_[size_t(v)]);
  }

  void PlaceScratch(int32_t node) {
    Device* device = p_.nodes[size_t(node)].run.device;
    size_t location = 0;
    for (size_t d = 0; d < p_.devices.size(); ++d) {
      if (p_.devices[d] == device) location = d + 1;
    }
    Storage s;
    s.bytes = s_.scratch[size_t(node)].bytes;
    s_.unplanned_bytes += s.bytes;
    s.first = node;
    s.users = {node};
    scratch_.push_back({node, {int32_t(location), int32_t(storages_[location].size())}});
    storages_[location].push_back(std::move(s));
  }

  // Returns the input whose memory output o may take over; -1 if there is none.
  int32_t InPlaceInput(int32_t self, size_t o) {
    const PlanNode& n = p_.nodes[size_t(self)];
    if (n.kind != PlanNode::kKernel || p_.check != ValueCheck::kOff) return -1;
    const Node& node = *n.run.node;
    const int32_t out = n.out[o];
    const uint64_t bytes = s_.values[size_t(out)].bytes;
    size_t arg = 0;
    while (node.out_at()[arg + 1] <= o) ++arg;
    for (int32_t a : n.run.kernel->inplace[arg]) {
      const uint32_t i = node.in_at()[size_t(a)];
      if (node.in_at()[size_t(a) + 1] != i + 1) continue;
      const int32_t x = n.in[i];
      const PlanValue& in = p_.values[size_t(x)];
      if (in.kind != PlanValue::kBlock || in.location != p_.values[size_t(out)].location) continue;
      if (s_.values[size_t(x)].bytes != bytes || bytes == 0) continue;
      const Place place = place_[size_t(Root(x))];
      // Goes from the end: of many readers, the last one usually decides.
      const Slice readers = slices_[size_t(Root(x))];
      bool last = true;
      for (uint32_t r = readers.end; last && r-- > readers.begin;) last = readers_[r] == self || Before(readers_[r], self);
      // The node must not read the same memory through another input, nor have given it to another
      // output.
      int32_t uses = 0;
      for (int32_t v : n.in) uses += place_[size_t(Root(v))] == place;
      for (size_t p = 0; p < o; ++p) uses += place_[size_t(n.out[p])] == place;
      if (last && uses == 1) return x;
    }
    return -1;
  }

  // Computes the most bytes that are live together when nodes run in order.
  void FindPeak() {
    std::vector<int64_t> change(p_.nodes.size() + 1, 0);
    for (const auto& list : storages_) {
      for (const Storage& s : list) {
        change[size_t(s.first)] += int64_t(s.bytes);
        change[size_t(*std::max_element(s.users.begin(), s.users.end())) + 1] -= int64_t(s.bytes);
      }
    }
    int64_t live = 0, peak = 0;
    for (int64_t c : change) peak = std::max(peak, live += c);
    s_.peak_bytes = uint64_t(peak) + passed_bytes_;
    s_.unplanned_bytes += passed_bytes_;
  }

  const Plan& p_;
  PlanShapes& s_;
  bool side_by_side_ = false;
  uint64_t passed_bytes_ = 0;
  std::optional<BatchOrder> order_;  // set if nodes run side by side and the order is known
  std::vector<Slice> slices_;        // per value that is no view
  std::vector<int32_t> readers_;
  std::vector<std::vector<Storage>> storages_;  // per location, in the order of their makers
  std::vector<Place> place_;                    // per value that is no view
  std::vector<std::pair<int32_t, Place>> scratch_;
};

// Returns true if two loops do not wait for each other.
bool HasLoopsSideBySide(const Plan& plan) {
  constexpr size_t kMany = 16;  // among so many, some are certainly independent
  std::vector<size_t> loops;
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    if (IsLoop(plan.nodes[i])) loops.push_back(i);
  }
  if (loops.size() < 2 || loops.size() > kMany) return loops.size() > kMany;
  // In sequence, each loop has to follow the one before it.
  for (size_t l = 0; l + 1 < loops.size(); ++l) {
    std::vector<uint8_t> follows(plan.nodes.size(), 0);
    follows[loops[l]] = 1;
    for (size_t i = loops[l]; i < plan.nodes.size(); ++i) {
      for (int32_t k : plan.nodes[i].next) follows[size_t(k)] |= follows[i];
    }
    if (!follows[loops[l + 1]]) return true;
  }
  return false;
}

// Returns true if some nodes can run side by side and the bytes they touch outweigh the hand-over.
// Loops inside kernels use the threads either way.
bool WorthSharing(const Plan& plan, const PlanShapes& shapes) {
  std::vector<int32_t> depth(plan.nodes.size(), 0);
  std::map<int32_t, int32_t> heavy_at;
  bool blocking = false;
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    const PlanNode& n = plan.nodes[i];
    for (int32_t k : n.next) depth[size_t(k)] = std::max(depth[size_t(k)], depth[i] + 1);
    if (shapes.heavy[i]) ++heavy_at[depth[i]];
    blocking = blocking || (n.run.kernel && n.run.kernel->spec.may_block) || n.kind != PlanNode::kKernel;
  }
  int32_t wide = 0, levels = int32_t(heavy_at.size());
  for (auto& [d, count] : heavy_at) wide += count > 1;
  return (blocking && plan.nodes.size() > 1) || (levels > 0 && wide * 2 >= levels) || HasLoopsSideBySide(plan);
}

}  // namespace

void LayOut(const Plan& plan, PlanShapes* shapes) { Layout(plan, shapes).Run(); }

void MarkHeavy(const Plan& plan, PlanShapes* shapes) {
  constexpr uint64_t kWorth = 64 << 10;  // bytes touched: about 10 us of a memory-bound kernel
  shapes->heavy.clear();
  for (const PlanNode& n : plan.nodes) {
    shapes->heavy.push_back(BytesTouched(n, *shapes) >= kWorth || IsLoop(n));
  }
}

bool NeedsCounts(const Plan& plan) {
  return std::any_of(plan.nodes.begin(), plan.nodes.end(), [](const PlanNode& n) { return n.run.async; });
}

bool WantsCounts(const Plan& plan, const PlanOptions& options, const PlanShapes& shapes) {
  if (options.engine == "counted" || NeedsCounts(plan)) return true;
  if (plan.records) return false;
  return options.engine != "fixed" && options.threads > 1 && WorthSharing(plan, shapes);
}

}  // namespace thalweg
