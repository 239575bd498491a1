#include "framework/planner/emit/order.h"

#include <algorithm>
#include <numeric>
#include <queue>
#include <random>
#include <tuple>

#include "framework/graph/op_schema.h"

namespace thalweg {
namespace {

using Order = std::vector<int32_t>;

// Tracks the bytes of planned values while nodes run one after the other. A value stands for the
// memory of a plan's value and its views.
class Ledger {
 public:
  Ledger(const Plan& plan, const PlanShapes& shapes) : p_(plan), s_(shapes), reads_(plan.nodes.size()), readers_(plan.values.size()) {
    for (size_t i = 0; i < p_.nodes.size(); ++i) {
      for (int32_t v : p_.nodes[i].in) {
        const int32_t root = Root(v);
        if (Bytes(root) == 0) continue;
        if (std::find(reads_[i].begin(), reads_[i].end(), root) != reads_[i].end()) continue;
        reads_[i].push_back(root);
        readers_[size_t(root)].push_back(int32_t(i));
      }
    }
    Start();
  }

  // Resets to the state before any node has run.
  void Start() {
    live_ = peak_ = 0;
    left_.clear();
    for (const auto& r : readers_) left_.push_back(int32_t(r.size()));
  }
  // Returns how many more bytes are in use after node i than before, if it runs next.
  int64_t Growth(int32_t i) const {
    int64_t bytes = 0;
    for (int32_t v : p_.nodes[size_t(i)].out) bytes += left_[size_t(v)] > 0 ? int64_t(Bytes(v)) : 0;
    for (int32_t v : reads_[size_t(i)]) bytes -= left_[size_t(v)] == 1 ? int64_t(Bytes(v)) : 0;
    return bytes;
  }
  // Runs node i. lone(r) is called for a node r that is the last reader of a value.
  template <class F>
  void Run(int32_t i, const std::vector<uint8_t>& done, F&& lone) {
    int64_t made = int64_t(s_.scratch[size_t(i)].bytes);
    for (int32_t v : p_.nodes[size_t(i)].out) made += int64_t(Bytes(v));
    peak_ = std::max(peak_, live_ + made - TakenOver(i));
    live_ += Growth(i);
    for (int32_t v : reads_[size_t(i)]) {
      if (--left_[size_t(v)] != 1) continue;
      for (int32_t r : readers_[size_t(v)]) {
        if (r != i && !done[size_t(r)]) lone(r);
      }
    }
  }
  int64_t peak() const { return peak_; }
  // Returns the peak of an order.
  int64_t Peak(const Order& order) {
    Start();
    const std::vector<uint8_t> all_done(p_.nodes.size(), 1);
    for (int32_t i : order) Run(i, all_done, [](int32_t) {});
    return peak_;
  }

 private:
  int32_t Root(int32_t v) const { return p_.values[size_t(v)].view_of < 0 ? v : p_.values[size_t(v)].view_of; }
  uint64_t Bytes(int32_t v) const { return p_.values[size_t(v)].kind == PlanValue::kBlock ? s_.values[size_t(v)].bytes : 0; }

  // Returns the bytes of outputs that take the place of an input.
  int64_t TakenOver(int32_t i) const {
    const PlanNode& n = p_.nodes[size_t(i)];
    if (n.kind != PlanNode::kKernel || n.out.empty() || n.run.kernel->inplace[0].empty()) return 0;
    const uint64_t bytes = Bytes(n.out[0]);
    for (int32_t a : n.run.kernel->inplace[0]) {
      const int32_t v = Root(n.in[n.run.node->in_at()[size_t(a)]]);
      if (bytes && Bytes(v) == bytes && left_[size_t(v)] == 1) return int64_t(bytes);
    }
    return 0;
  }

  const Plan& p_;
  const PlanShapes& s_;
  std::vector<std::vector<int32_t>> reads_, readers_;  // node -> values, value -> nodes; each once
  std::vector<int32_t> left_;                          // per value: readers still to come
  int64_t live_ = 0, peak_ = 0;
};

// Among the nodes that could be next, takes the one whose key(i) is least; after(i, done, changed)
// runs after each node and reports the nodes whose keys have changed.
template <class Key, class After>
Order ListSchedule(const Plan& plan, Key&& key, After&& after) {
  using Entry = std::pair<decltype(key(0)), int32_t>;
  const size_t n = plan.nodes.size();
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  std::vector<int32_t> waits(n);
  std::vector<uint8_t> done(n, 0);
  for (size_t i = 0; i < n; ++i) {
    waits[i] = plan.nodes[i].pending;
    if (waits[i] == 0) ready.push({key(int32_t(i)), int32_t(i)});
  }
  Order order;
  while (!ready.empty()) {
    const int32_t i = ready.top().second;
    ready.pop();
    if (std::exchange(done[size_t(i)], 1)) continue;  // an entry with an older key
    order.push_back(i);
    after(i, done, [&](int32_t changed) {
      if (waits[size_t(changed)] == 0) ready.push({key(changed), changed});
    });
    for (int32_t k : plan.nodes[size_t(i)].next) {
      if (--waits[size_t(k)] == 0) ready.push({key(k), k});
    }
  }
  return order;
}

// Takes the node that makes memory use grow least. noise: the range of a random term, in bytes.
Order Greedy(const Plan& plan, Ledger* ledger, int64_t noise, uint64_t seed) {
  std::mt19937_64 random(seed);
  ledger->Start();
  auto key = [&](int32_t i) {
    const int64_t luck = noise ? int64_t(random() % uint64_t(noise)) : 0;
    return std::tuple(ledger->Growth(i) + luck, -plan.nodes[size_t(i)].priority, i);
  };
  return ListSchedule(plan, key, [&](int32_t i, const std::vector<uint8_t>& done, auto&& changed) { ledger->Run(i, done, changed); });
}

// Runs each node as late as possible: right before the first node that needs it.
Order DepthFirst(const Plan& plan) {
  const size_t n = plan.nodes.size();
  std::vector<std::vector<int32_t>> before(n);
  for (size_t i = 0; i < n; ++i) {
    for (int32_t k : plan.nodes[i].next) before[size_t(k)].push_back(int32_t(i));
  }
  Order order, stack;
  std::vector<uint8_t> state(n, 0);  // 1: its inputs are being placed, 2: done
  for (size_t end = 0; end < n; ++end) {
    if (!plan.nodes[end].next.empty()) continue;
    stack.push_back(int32_t(end));
    while (!stack.empty()) {
      const size_t i = size_t(stack.back());
      if (state[i] == 0) {
        state[i] = 1;
        for (auto b = before[i].rbegin(); b != before[i].rend(); ++b) {
          if (state[size_t(*b)] == 0) stack.push_back(*b);
        }
        continue;
      }
      stack.pop_back();
      if (std::exchange(state[i], 2) != 2) order.push_back(int32_t(i));
    }
  }
  return order;
}

}  // namespace

Order OrderByPriority(const Plan& plan) {
  return ListSchedule(
      plan, [&](int32_t i) { return std::pair(-int64_t{plan.nodes[size_t(i)].priority}, i); },
      [](int32_t, const std::vector<uint8_t>&, auto&&) {});
}

Order OrderForMemory(const Plan& plan, const PlanShapes& shapes) {
  Ledger ledger(plan, shapes);
  Order best(plan.nodes.size());
  std::iota(best.begin(), best.end(), 0);
  int64_t peak = ledger.Peak(best);
  auto attempt = [&](Order order) {
    const int64_t p = ledger.Peak(order);
    if (p >= peak) return;
    peak = p;
    best = std::move(order);
  };
  attempt(DepthFirst(plan));
  attempt(Greedy(plan, &ledger, 0, 0));
  constexpr size_t kRestartsTimesNodes = 16384;  // so that planning stays linear
  const size_t restarts = std::min<size_t>(16, kRestartsTimesNodes / (plan.nodes.size() + 1));
  for (size_t k = 1; k <= restarts; ++k) attempt(Greedy(plan, &ledger, peak / int64_t(1 + k), k));
  return best;
}

void Reorder(const Order& order, Plan* plan, PlanShapes* shapes) {
  std::vector<int32_t> at(order.size());
  for (size_t k = 0; k < order.size(); ++k) at[size_t(order[k])] = int32_t(k);
  std::vector<PlanNode> nodes;
  std::vector<PlanShapes::Scratch> scratch;
  std::vector<uint8_t> heavy;
  for (int32_t i : order) {
    nodes.push_back(std::move(plan->nodes[size_t(i)]));
    for (int32_t& k : nodes.back().next) k = at[size_t(k)];
    std::sort(nodes.back().next.begin(), nodes.back().next.end());
    scratch.push_back(shapes->scratch[size_t(i)]);
    if (!shapes->heavy.empty()) heavy.push_back(shapes->heavy[size_t(i)]);
  }
  plan->nodes = std::move(nodes);
  shapes->scratch = std::move(scratch);
  shapes->heavy = std::move(heavy);
}

}  // namespace thalweg
