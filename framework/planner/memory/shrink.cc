#include "framework/planner/memory/shrink.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "framework/base/checked.h"
#include "framework/base/dtype.h"
#include "framework/graph/function_shapes.h"
#include "framework/graph/node_marks.h"
#include "framework/planner/compilers/part.h"
#include "framework/planner/placement/cost_model.h"
#include "framework/planner/renumber.h"
#include "framework/runtime/choose_kernel.h"
#include "framework/runtime/runtime.h"

namespace thalweg {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// For a part, returns true if one of its nodes has the mark.
bool ReadsLate(const WorkNode& n) {
  if (!n.part) return IsMarked(*n.node, kReadsLateAttr);
  const auto& members = n.part->graph().members;
  return std::any_of(members.begin(), members.end(), [](const PartGraph::Member& m) { return IsMarked(*m.node, kReadsLateAttr); });
}

bool Runs(const WorkNode& n) { return n.node && !n.dead && !n.constant; }

// Returns true if the node does not run but shows its inputs under other dims (Emitter::MakeViews).
bool IsView(const WorkNode& n) {
  if (!Runs(n) || n.part || n.shapes.empty() || !n.controls.empty() || n.node->op().stateful) return false;
  const Node& node = *n.node;
  for (size_t o = 0; o < node.op().outputs.size(); ++o) {
    if (n.kernel->view[o] < 0) return false;
  }
  for (size_t o = 0; o < n.shapes.size(); ++o) {
    if (!n.shapes[o].known() || !FindDType(n.out_types[o])->plain) return false;
  }
  return true;
}

// One step of the changed graph: a node of the work graph, or what was added to save memory.
struct Item {
  enum Kind : uint8_t { kNode, kAgain, kOut, kBack };  // kOut: a value goes to host memory; kBack: it is needed again
  Kind kind = kNode;
  int32_t of = -1;          // the work node; for kOut and kBack the value's maker
  int32_t port = 0;         // for kOut and kBack
  std::vector<int32_t> in;  // values
  int32_t out = -1;         // first value that it makes
  int32_t wait = -1;        // for kAgain and kBack: the item that it waits for
};

// The facts about values. A value stands for an output of an item.
struct ValueFacts {
  int32_t root = -1;   // the value whose memory this one shows; itself if it is no view
  int32_t maker = -1;  // work node
  int32_t port = 0;
  uint64_t bytes = 0;  // of planned memory
};

struct Sketch {
  std::vector<Item> items;
  std::vector<ValueFacts> values;
};

struct Profile {
  std::vector<int32_t> first, last;  // per value that is a root: positions of its maker and last reader; -1: none
  uint64_t peak = 0;
  int32_t at = 0;  // the position of the peak
};

// How a value is kept from waiting in its memory.
struct Way {
  double ns = kNever;
  bool swap = false;
};

class Shrinker {
 public:
  Shrinker(WorkGraph* w, const ShrinkGoal& goal) : w_(*w), goal_(goal) {}

  Status Run() {
    base_ = Begin();
    FindCosts();
    const Profile start = ProfileOf(base_);
    if (goal_.bytes && start.peak <= goal_.bytes) return Status();
    bool changed = false;
    constexpr int kRounds = 4;  // a peak that is lowered gives way to the next
    for (int round = 0; round < kRounds; ++round) {
      const Profile now = ProfileOf(base_);
      if (goal_.bytes && now.peak <= goal_.bytes) break;
      if (!Round(now)) break;
      changed = true;
    }
    return changed ? Apply() : Status();
  }

 private:
  // ---- The graph as it is ----

  Sketch Begin() {
    Sketch s;
    for (size_t i = 0; i < w_.nodes.size(); ++i) {
      const WorkNode& n = w_.nodes[i];
      first_.push_back(int32_t(s.values.size()));
      for (size_t o = 0; o < n.shapes.size(); ++o) {
        s.values.push_back({int32_t(s.values.size()), int32_t(i), int32_t(o), CountedBytes(n, o)});
      }
    }
    for (size_t i = 0; i < w_.nodes.size(); ++i) {
      const WorkNode& n = w_.nodes[i];
      Item item;
      item.of = int32_t(i);
      item.out = first_[i];
      if (!Runs(n)) {
        s.items.push_back(std::move(item));
        continue;
      }
      for (const WorkEdge& e : n.in) item.in.push_back(IdOf(e));
      if (IsView(n)) {
        for (size_t o = 0, a = 0; o < n.shapes.size(); ++o) {
          while (n.node->out_at()[a + 1] <= o) ++a;
          const uint32_t k = n.node->in_at()[size_t(n.kernel->view[a])] + uint32_t(o) - n.node->out_at()[a];
          ValueFacts& v = s.values[size_t(first_[i]) + o];
          v.root = s.values[size_t(item.in[k])].root;
          v.bytes = 0;
        }
      }
      s.items.push_back(std::move(item));
    }
    // A tensor of its own is not part of the plan's blocks.
    const auto held = [&](const WorkEdge& e) { s.values[size_t(s.values[size_t(IdOf(e))].root)].bytes = 0; };
    for (const WorkEdge& e : w_.fetches) held(e);
    for (const WorkNode& n : w_.nodes) {
      if (!Runs(n)) continue;
      for (size_t a = 0; a < n.node->op().inputs.size(); ++a) {
        for (uint32_t k = n.node->in_at()[a]; n.kernel->keep[a] && k < n.node->in_at()[a + 1]; ++k) held(n.in[k]);
      }
      for (const WorkEdge& e : n.in) {
        const WorkNode& maker = w_.nodes[size_t(e.node)];
        if (Runs(maker) && MemoryOf(maker.device) != MemoryOf(n.device)) held(e);
      }
    }
    return s;
  }
  int32_t IdOf(const WorkEdge& e) const { return first_[size_t(e.node)] + e.port; }
  static const Device* MemoryOf(const Device* d) { return d->host_memory() ? nullptr : d; }

  // Returns 0 for a value that is not planned.
  uint64_t CountedBytes(const WorkNode& n, size_t o) const {
    const DTypeInfo* info = FindDType(n.out_types[o]);
    if (!Runs(n) || !n.kernel->gives.empty() || !info || !info->plain || !n.shapes[o].known()) return 0;
    // A view is no memory of its own, and one that runs, such as a read of a variable, gives a tensor.
    if (std::any_of(n.kernel->view.begin(), n.kernel->view.end(), [](int32_t a) { return a >= 0; })) return 0;
    if (goal_.device && n.device != goal_.device) return 0;
    const auto bytes = CountBytes(n.shapes[o].dims().data(), n.shapes[o].rank(), n.out_types[o]);
    return bytes.ok() ? (uint64_t(*bytes) + 63) / 64 * 64 : 0;
  }

  double Elements(const Shape& s) const {
    double count = s.known() ? 1 : 0;
    for (int64_t d : s.dims()) count *= double(d);
    return count;
  }

  // Estimates the time of a node: measured, or by the bytes that it touches and, for a product, its
  // multiply-adds (see layout_choice.cc).
  double CostOf(const WorkNode& n) const {
    if (!Runs(n) || IsView(n)) return 0;
    double bytes = 0;
    std::vector<double> operands;
    for (const WorkEdge& e : n.in) {
      const WorkNode& maker = w_.nodes[size_t(e.node)];
      const Shape& s = maker.shapes[size_t(e.port)];
      const DTypeInfo* info = FindDType(BaseType(maker.out_types[size_t(e.port)]));
      bytes += info ? Elements(s) * double(info->bytes) : 0;
      if (s.known() && s.rank() >= 2) operands.push_back(Elements(s));
    }
    double out = 0, made = 0;
    for (size_t o = 0; o < n.shapes.size(); ++o) {
      const DTypeInfo* info = FindDType(BaseType(n.out_types[o]));
      out = std::max(out, Elements(n.shapes[o]));
      made += info ? Elements(n.shapes[o]) * double(info->bytes) : 0;
    }
    if (w_.options->costs && !n.part && w_.options->costs->Knows(n.node->op().name, n.device->name())) {
      return double(w_.options->costs->KernelNs(n.node->op().name, "", n.device->name(), uint64_t(made)));
    }
    constexpr double kCallNs = 200, kByteNs = 0.1, kMultiplyAddNs = 0.02;
    double ns = kCallNs + kByteNs * (bytes + made);
    std::sort(operands.rbegin(), operands.rend());
    if (operands.size() >= 2 && !n.node->op().axes.elementwise && !n.node->op().commutative && !n.kernel->spec.cheap) {
      ns += kMultiplyAddNs * std::sqrt(operands[0] * operands[1] * out);
    }
    return ns;
  }

  bool MayRunAgain(const WorkNode& n) const {
    if (!goal_.recompute || !Runs(n) || n.flow != Flow::kNone || n.ordered || n.open) return false;
    const OpSchema& op = n.node->op();
    if (op.stateful || op.once || op.touches || CallsFunctions(op) || n.kernel->spec.nondeterministic || !n.kernel->gives.empty())
      return false;
    if (goal_.marked && ReadsLate(n)) return false;
    if (n.part) {  // its op and kernel do not say these of its members
      const auto& members = n.part->graph().members;
      const auto differs = [](const PartGraph::Member& m) { return m.kernel->spec.nondeterministic || CallsFunctions(m.node->op()); };
      if (std::any_of(members.begin(), members.end(), differs)) return false;
    }
    const auto plain = [](uint32_t type) {
      const DTypeInfo* info = FindDType(type);
      return info && info->plain;
    };
    for (const WorkEdge& e : n.in) {
      if (!plain(w_.nodes[size_t(e.node)].out_types[size_t(e.port)])) return false;
    }
    return std::all_of(n.out_types.begin(), n.out_types.end(), plain);
  }

  void FindCosts() {
    for (const WorkNode& n : w_.nodes) {
      cost_.push_back(CostOf(n));
      again_.push_back(MayRunAgain(n));
      step_ns_ += cost_.back();
    }
  }

  // ---- Memory over a step ----

  bool IsLive(const Item& item) const { return item.kind != Item::kNode || Runs(w_.nodes[size_t(item.of)]); }
  size_t OutputsOf(const Item& item) const {
    return item.kind == Item::kOut || item.kind == Item::kBack ? 1 : w_.nodes[size_t(item.of)].shapes.size();
  }

  Profile ProfileOf(const Sketch& s) const {
    Profile p;
    p.first.assign(s.values.size(), -1);
    p.last.assign(s.values.size(), -1);
    for (size_t i = 0; i < s.items.size(); ++i) {
      const Item& item = s.items[i];
      if (!IsLive(item)) continue;
      for (int32_t v : item.in) p.last[size_t(s.values[size_t(v)].root)] = int32_t(i);
      for (size_t o = 0; o < OutputsOf(item); ++o) {
        const auto v = size_t(item.out) + o;
        if (s.values[v].root == int32_t(v)) p.first[v] = p.last[v] = int32_t(i);
      }
    }
    std::vector<int64_t> change(s.items.size() + 1, 0);
    for (size_t v = 0; v < s.values.size(); ++v) {
      if (p.first[v] < 0 || s.values[v].bytes == 0) continue;
      change[size_t(p.first[v])] += int64_t(s.values[v].bytes);
      change[size_t(p.last[v]) + 1] -= int64_t(s.values[v].bytes);
    }
    int64_t live = 0;
    for (size_t i = 0; i < s.items.size(); ++i) {
      live += change[i];
      const int64_t now = live + (IsLive(s.items[i]) ? Scratch(s.items[i]) - TakenOver(s, p, i) : 0);
      if (now <= int64_t(p.peak)) continue;
      p.peak = uint64_t(now);
      p.at = int32_t(i);
    }
    return p;
  }
  int64_t Scratch(const Item& item) const {
    if (item.kind == Item::kOut || item.kind == Item::kBack) return 0;
    const auto it = goal_.scratch.find(w_.nodes[size_t(item.of)].node);
    return it == goal_.scratch.end() ? 0 : int64_t(it->second);
  }
  // Returns the bytes of the first output, if it takes the place of an input.
  int64_t TakenOver(const Sketch& s, const Profile& p, size_t i) const {
    const Item& item = s.items[i];
    if (item.kind == Item::kOut || item.kind == Item::kBack) return 0;
    const WorkNode& n = w_.nodes[size_t(item.of)];
    if (n.part || n.shapes.empty() || n.kernel->inplace.empty()) return 0;
    const uint64_t bytes = s.values[size_t(item.out)].bytes;
    for (int32_t a : n.kernel->inplace[0]) {
      const uint32_t k = n.node->in_at()[size_t(a)];
      if (n.node->in_at()[size_t(a) + 1] != k + 1) continue;
      const auto root = size_t(s.values[size_t(item.in[k])].root);
      if (bytes && s.values[root].bytes == bytes && p.last[root] == int32_t(i)) return int64_t(bytes);
    }
    return 0;
  }

  // ---- Choice ----

  struct Candidate {
    int32_t value = -1;  // a root
    Way way;
    uint64_t bytes = 0;
    double ratio() const { return way.ns / double(bytes); }
  };
  struct Attempt {
    Sketch sketch;
    uint64_t peak = 0;
    double ns = 0;  // of all that was added
  };

  // Tries to lower the peak of the base; returns false if nothing does.
  bool Round(const Profile& now) {
    turn_ = now.at;
    used_later_.assign(base_.values.size(), 0);
    std::vector<uint8_t> other_reader(base_.values.size(), 0), at_turn(base_.values.size(), 0);
    for (int32_t v : base_.items[size_t(turn_)].in) at_turn[size_t(base_.values[size_t(v)].root)] = 1;
    for (size_t i = size_t(turn_) + 1; i < base_.items.size(); ++i) {
      const Item& item = base_.items[i];
      if (item.in.empty()) continue;
      const bool late = item.kind == Item::kAgain || ReadsLate(w_.nodes[size_t(item.of)]) || IsViewItem(item);
      for (int32_t v : item.in) {
        used_later_[size_t(base_.values[size_t(v)].root)] = 1;
        if (!late) other_reader[size_t(base_.values[size_t(v)].root)] = 1;
      }
    }
    closure_.assign(w_.nodes.size(), -1);
    std::vector<Candidate> candidates;
    for (size_t v = 0; v < base_.values.size(); ++v) {
      if (now.first[v] < 0 || now.first[v] >= turn_ || now.last[v] <= turn_ || at_turn[v]) continue;
      if (base_.values[v].bytes == 0 || base_.items[size_t(now.first[v])].kind != Item::kNode) continue;
      if (goal_.marked && other_reader[v]) continue;
      Candidate c{int32_t(v), WayOf(base_.values[v]), base_.values[v].bytes};
      if (c.way.ns < kNever) candidates.push_back(c);
    }
    if (candidates.empty()) return false;
    std::vector<double> ratios;
    for (const Candidate& c : candidates) ratios.push_back(c.ratio());
    std::sort(ratios.begin(), ratios.end());
    std::vector<double> most;
    constexpr size_t kSteps = 8;
    for (size_t k = 1; k <= kSteps; ++k) {
      const double r = ratios[std::max<size_t>(ratios.size() * k / kSteps, 1) - 1];
      if (most.empty() || most.back() < r) most.push_back(r);
    }
    std::optional<Attempt> best;
    for (double ratio : most) {
      for (size_t parts : {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64}) {
        Attempt a = Try(candidates, ratio, parts);
        if (a.peak < now.peak && IsWorthIt(a, now) && (!best || Better(a, *best))) best = std::move(a);
        if (parts > candidates.size()) break;
      }
    }
    if (!best) return false;
    base_ = std::move(best->sketch);
    return true;
  }

  bool IsViewItem(const Item& item) const { return item.kind == Item::kNode && IsView(w_.nodes[size_t(item.of)]); }

  // Without a goal in bytes, time is paid for as much as memory shrinks: half the memory for at most
  // ln 2 of the step's time.
  double Score(uint64_t peak, double ns) const { return std::log(double(peak) + 1) + ns / std::max(step_ns_, 1.0); }
  bool IsWorthIt(const Attempt& a, const Profile& now) const { return goal_.bytes || Score(a.peak, a.ns) < Score(now.peak, 0); }
  bool Better(const Attempt& a, const Attempt& b) const {
    if (!goal_.bytes) return Score(a.peak, a.ns) < Score(b.peak, b.ns);
    const bool fits = a.peak <= goal_.bytes, other = b.peak <= goal_.bytes;
    if (fits != other) return fits;
    if (fits) return a.ns < b.ns;
    return a.peak != b.peak ? a.peak < b.peak : a.ns < b.ns;
  }

  Way WayOf(const ValueFacts& v) {
    Way way{Again(v.maker, 0), false};
    const WorkNode& maker = w_.nodes[size_t(v.maker)];
    // The node of a part ends with its plan, but nodes beside it (Passing) stay in the graph.
    if (maker.part || maker.device->host_memory() || goal_.marked || !w_.runtime().registry().FindRole("identity").ok()) return way;
    const CostModel guess;
    const CostModel& costs = w_.options->costs ? *w_.options->costs : guess;
    const double swap = double(costs.CopyNs(maker.device->name(), "", v.bytes) + costs.CopyNs("", maker.device->name(), v.bytes));
    return swap < way.ns ? Way{swap, true} : way;
  }

  // Returns the time to run the node again, together with the nodes whose values are gone by then.
  double Again(int32_t node, int depth) {
    constexpr int kDeepest = 64;
    if (!again_[size_t(node)] || depth > kDeepest) return kNever;
    double& ns = closure_[size_t(node)];
    if (ns >= 0) return ns;
    double all = cost_[size_t(node)];
    for (const WorkEdge& e : w_.nodes[size_t(node)].in) {
      const int32_t root = base_.values[size_t(IdOf(e))].root;
      if (!IsGone(root)) continue;
      const double input = Again(base_.values[size_t(root)].maker, depth + 1);
      if (input < kNever) all += input;  // else the input is kept
    }
    return ns = all;
  }
  // Returns true if the planned value is not in memory after the turn.
  bool IsGone(int32_t root) const { return base_.values[size_t(root)].bytes > 0 && !used_later_[size_t(root)]; }

  // ratio: values whose way costs more per byte stay. parts: runs of values that are computed again
  // at once; what a part needs of earlier ones stays.
  Attempt Try(const std::vector<Candidate>& candidates, double ratio, size_t parts) {
    uint64_t total = 0, sum = 0;
    for (const Candidate& c : candidates) total += c.ratio() <= ratio ? c.bytes : 0;
    dropped_.assign(base_.values.size(), 0);
    swapped_.assign(base_.values.size(), 0);
    part_.assign(base_.values.size(), -1);
    seen_.assign(w_.nodes.size(), -1);
    for (const Candidate& c : candidates) {
      if (c.ratio() > ratio) continue;
      (c.way.swap ? swapped_ : dropped_)[size_t(c.value)] = 1;
      part_[size_t(c.value)] = int32_t(double(sum) * double(parts) / double(total));
      sum += c.bytes;
    }
    for (auto c = candidates.rbegin(); c != candidates.rend(); ++c) {
      if (dropped_[size_t(c->value)]) KeepOthers(base_.values[size_t(c->value)].maker, part_[size_t(c->value)], c->value, 0);
    }
    return Build();
  }
  // Values of other parts that a part's computation needs stay.
  // seen: the value whose computation this is about; each node is looked at once for it.
  void KeepOthers(int32_t node, int32_t part, int32_t seen, int depth) {
    constexpr int kDeepest = 64;
    if (depth > kDeepest || seen_[size_t(node)] == seen) return;
    seen_[size_t(node)] = seen;
    for (const WorkEdge& e : w_.nodes[size_t(node)].in) {
      const auto root = size_t(base_.values[size_t(IdOf(e))].root);
      if (dropped_[root] && part_[root] != part) dropped_[root] = 0;
      if (IsGone(int32_t(root)) && again_[size_t(base_.values[root].maker)]) KeepOthers(base_.values[root].maker, part, seen, depth + 1);
    }
  }

  // ---- The changed graph ----

  Attempt Build() {
    Attempt a;
    a.sketch.values = base_.values;
    again_of_.assign(w_.nodes.size(), -1);
    out_of_.assign(base_.values.size(), -1);
    back_of_.assign(base_.values.size(), -1);
    moved_.assign(base_.items.size(), -1);
    made_at_.assign(w_.nodes.size(), -1);
    last_ = -1;
    for (size_t i = 0; i < base_.items.size(); ++i) {
      Item item = base_.items[i];
      if (item.wait >= 0) item.wait = moved_[size_t(item.wait)];
      if (int32_t(i) > turn_ && IsLive(item)) Replace(&a, &item, i);
      moved_[i] = int32_t(a.sketch.items.size());
      const bool sends = item.kind == Item::kNode && IsLive(item);
      if (sends && !IsViewItem(item)) last_ = made_at_[size_t(item.of)] = moved_[i];
      const int32_t first = item.out;
      const size_t n_out = OutputsOf(item);
      a.sketch.items.push_back(std::move(item));
      for (size_t o = 0; sends && int32_t(i) <= turn_ && o < n_out; ++o) {
        if (swapped_[size_t(first) + o]) SendOut(&a, first + int32_t(o));
      }
    }
    a.peak = ProfileOf(a.sketch).peak;
    return a;
  }

  // Gives a late reader the new values. base: its position in the base.
  void Replace(Attempt* a, Item* item, size_t base) {
    bool any = false;
    for (int32_t v : item->in) any = any || IsReplaced(v);
    if (!any) return;
    const int32_t wait = WaitOf(base);
    for (int32_t& v : item->in) {
      if (IsReplaced(v)) v = Replaced(a, v, wait);
    }
  }
  bool IsReplaced(int32_t v) const {
    if (size_t(v) >= base_.values.size()) return false;
    const auto root = size_t(base_.values[size_t(v)].root);
    return dropped_[root] || swapped_[root];
  }
  // Returns the item that the nodes added for a late reader wait for: the last one that the reader
  // needs anyway, if it runs after the turn, else the last one before the reader.
  int32_t WaitOf(size_t base) const {
    int32_t needed = -1;
    for (int32_t v : base_.items[base].in) {
      if (!IsReplaced(v)) needed = std::max(needed, made_at_[size_t(base_.values[size_t(base_.values[size_t(v)].root)].maker)]);
    }
    return needed > moved_[size_t(turn_)] ? needed : last_;
  }

  int32_t Replaced(Attempt* a, int32_t v, int32_t wait) {
    const ValueFacts facts = base_.values[size_t(v)];
    if (facts.root != v) {  // another view of the memory
      const int32_t first = RunAgain(a, facts.maker, wait);
      return first + facts.port;
    }
    if (swapped_[size_t(v)]) return BringBack(a, v, wait);
    return RunAgain(a, facts.maker, wait) + facts.port;
  }
  // Returns the first value of the node's second run.
  int32_t RunAgain(Attempt* a, int32_t node, int32_t wait) {
    constexpr int kDeepest = 1000;  // so that the stack is large enough; what lies deeper stays
    if (again_of_[size_t(node)] >= 0) return again_of_[size_t(node)];
    ++depth_;
    Item item;
    item.kind = Item::kAgain;
    item.of = node;
    item.wait = wait;
    for (const WorkEdge& e : w_.nodes[size_t(node)].in) {
      const int32_t v = IdOf(e);
      const ValueFacts facts = base_.values[size_t(v)];
      const bool gone = IsGone(facts.root) && again_[size_t(base_.values[size_t(facts.root)].maker)];
      if (depth_ > kDeepest) {
        item.in.push_back(v);
      } else if (IsReplaced(v)) {
        item.in.push_back(Replaced(a, v, wait));
      } else if (gone) {
        item.in.push_back(RunAgain(a, facts.maker, wait) + facts.port);
      } else {
        item.in.push_back(v);
      }
    }
    --depth_;
    item.out = int32_t(a->sketch.values.size());
    const WorkNode& n = w_.nodes[size_t(node)];
    for (size_t o = 0; o < n.shapes.size(); ++o) {
      const ValueFacts& old = base_.values[size_t(first_[size_t(node)]) + o];
      ValueFacts v{int32_t(a->sketch.values.size()), node, int32_t(o), old.bytes};
      if (old.root != first_[size_t(node)] + int32_t(o)) v.root = RootOfView(*a, n, item, o);
      a->sketch.values.push_back(v);
    }
    again_of_[size_t(node)] = item.out;
    a->ns += cost_[size_t(node)];
    a->sketch.items.push_back(std::move(item));
    return again_of_[size_t(node)];
  }
  static int32_t RootOfView(const Attempt& a, const WorkNode& n, const Item& item, size_t o) {
    size_t arg = 0;
    while (n.node->out_at()[arg + 1] <= o) ++arg;
    const uint32_t k = n.node->in_at()[size_t(n.kernel->view[arg])] + uint32_t(o) - n.node->out_at()[arg];
    return a.sketch.values[size_t(item.in[k])].root;
  }

  void SendOut(Attempt* a, int32_t v) {
    Item item;
    item.kind = Item::kOut;
    item.of = base_.values[size_t(v)].maker;
    item.port = base_.values[size_t(v)].port;
    item.in = {v};
    item.out = AddHostValue(a, item);
    out_of_[size_t(v)] = item.out;
    a->sketch.items.push_back(std::move(item));
  }
  int32_t BringBack(Attempt* a, int32_t v, int32_t wait) {
    if (back_of_[size_t(v)] >= 0) return back_of_[size_t(v)];
    Item item;
    item.kind = Item::kBack;
    item.of = base_.values[size_t(v)].maker;
    item.port = base_.values[size_t(v)].port;
    item.in = {out_of_[size_t(v)]};
    item.wait = wait;
    item.out = AddHostValue(a, item);
    // On the device the value takes its memory again from here to its last reader.
    a->sketch.values[size_t(item.out)].bytes = base_.values[size_t(v)].bytes;
    back_of_[size_t(v)] = item.out;
    const WorkNode& maker = w_.nodes[size_t(item.of)];
    const CostModel guess;
    const CostModel& costs = w_.options->costs ? *w_.options->costs : guess;
    const uint64_t bytes = base_.values[size_t(v)].bytes;
    a->ns += double(costs.CopyNs(maker.device->name(), "", bytes) + costs.CopyNs("", maker.device->name(), bytes));
    a->sketch.items.push_back(std::move(item));
    return back_of_[size_t(v)];
  }
  int32_t AddHostValue(Attempt* a, const Item& item) {
    const auto v = int32_t(a->sketch.values.size());
    a->sketch.values.push_back({v, item.of, item.port, 0});
    return v;
  }

  // ---- The result ----

  Status Apply() {
    std::vector<WorkNode> nodes;
    std::vector<int32_t> at(w_.nodes.size(), -1);
    std::vector<WorkEdge> edge(base_.values.size());
    MemoryNote& note = w_.memory;
    note.step_ns = int64_t(step_ns_);
    for (size_t i = 0; i < base_.items.size(); ++i) {
      const Item& item = base_.items[i];
      const WorkNode& of = w_.nodes[size_t(item.of)];
      WorkNode n;
      if (item.kind == Item::kNode || item.kind == Item::kAgain) {
        n = of;
        for (size_t k = 0; k < n.in.size(); ++k) n.in[k] = edge[size_t(item.in.empty() ? IdOf(of.in[k]) : item.in[k])];
        for (int32_t& c : n.controls) c = at[size_t(c)];
      } else {
        ASSIGN_OR_RETURN(n, Passing(item, of, edge[size_t(item.in[0])]));
      }
      if (item.wait >= 0 && !IsView(of)) n.controls.push_back(item.wait);
      if (item.kind == Item::kNode) at[size_t(item.of)] = int32_t(i);
      if (item.kind == Item::kAgain) {
        n.within = StrCat("computed again: ", n.within);
        if (!IsView(of)) {
          note.recomputed.push_back(of.node);
          note.recompute_ns += int64_t(cost_[size_t(item.of)]);
        }
      }
      if (item.kind == Item::kBack) Tell(item, of, &note);
      for (size_t o = 0; o < OutputsOf(item); ++o) edge[size_t(item.out) + o] = {int32_t(i), int32_t(o)};
      nodes.push_back(std::move(n));
    }
    w_.nodes = std::move(nodes);
    const auto read = [&](const WorkEdge& e) { return WorkEdge{at[size_t(e.node)], e.port}; };
    Renumber(&w_, at, read, [&](int32_t t) { return at[size_t(t)]; });
    return Status();
  }

  void Tell(const Item& item, const WorkNode& of, MemoryNote* note) const {
    const uint64_t bytes = base_.values[size_t(item.out)].bytes;
    note->swapped.push_back({of.node, item.port, bytes});
    const CostModel guess;
    const CostModel& costs = w_.options->costs ? *w_.options->costs : guess;
    note->swap_ns += costs.CopyNs(of.device->name(), "", bytes) + costs.CopyNs("", of.device->name(), bytes);
  }

  // Returns a node in host memory that passes the value on.
  StatusOr<WorkNode> Passing(const Item& item, const WorkNode& maker, const WorkEdge& from) {
    ASSIGN_OR_RETURN(const OpSchema* op, w_.runtime().registry().FindRole("identity"));
    ASSIGN_OR_RETURN(Device * host, w_.runtime().host_device());
    const uint32_t dtype = maker.out_types[size_t(item.port)];
    WorkNode n;
    const std::string key = StrCat(item.kind == Item::kOut ? "to host memory " : "from host memory ", item.port);
    ASSIGN_OR_RETURN(
        n.node, w_.graph->Beside(*maker.node, key, *op, {Edge{maker.node, item.port}}, {dtype}, std::vector<AttrValue>(op->attrs.size())));
    n.in = {from};
    n.out_types = {dtype};
    n.shapes = {maker.shapes[size_t(item.port)]};
    n.values.resize(1);
    n.varies = maker.varies;
    n.device = host;
    ASSIGN_OR_RETURN(n.kernel, ChooseKernel(w_.runtime().registry(), *host, NodeFacts{*n.node, {}, {}}));
    if (!n.kernel) return NotFound("no kernel of ", op->name, " for ", DTypeName(dtype), " in host memory");
    return n;
  }

  WorkGraph& w_;
  const ShrinkGoal& goal_;
  Sketch base_;
  std::vector<int32_t> first_;  // work node -> its first value
  std::vector<double> cost_;    // per work node
  std::vector<uint8_t> again_;  // per work node: whether it may run a second time
  double step_ns_ = 0;
  // A round sets these.
  int32_t turn_ = 0;                 // the position of the peak; readers behind it are late
  std::vector<uint8_t> used_later_;  // per root
  std::vector<double> closure_;      // per work node: see Again; -1: not computed yet
  // An attempt sets these.
  std::vector<uint8_t> dropped_, swapped_;  // per root
  std::vector<int32_t> part_;               // per root
  std::vector<int32_t> seen_;               // work node -> the value for which KeepOthers saw it last
  std::vector<int32_t> again_of_;           // work node -> first value of its second run
  std::vector<int32_t> out_of_, back_of_;   // root -> the value in host memory
  std::vector<int32_t> moved_;              // item of the base -> item
  std::vector<int32_t> made_at_;            // work node -> item that runs it first; -1: none
  int depth_ = 0;                           // of RunAgain
  int32_t last_ = -1;                       // the last item that runs a node for the first time
};

}  // namespace

Status Shrink(WorkGraph* w, const ShrinkGoal& goal) {
  if (w->flow || w->nodes.empty()) return Status();
  // Nodes that run again wait for others that their readers need not wait for. Another task could wait
  // for such a reader before it sends what is received here.
  const auto receives = [](const WorkNode& n) { return Runs(n) && n.node->op().role == "recv"; };
  if (std::any_of(w->nodes.begin(), w->nodes.end(), receives)) return Status();
  return Shrinker(w, goal).Run();
}

bool HasLateReaders(const WorkGraph& w) {
  return std::any_of(w.nodes.begin(), w.nodes.end(), [](const WorkNode& n) { return Runs(n) && ReadsLate(n); });
}

Status RecomputePass(WorkGraph* w) {
  if (!HasLateReaders(*w)) return Status();
  ShrinkGoal goal;
  goal.marked = true;
  return Shrink(w, goal);
}

}  // namespace thalweg
