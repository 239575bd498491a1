#include "framework/planner/placement/list_placer.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <utility>

namespace thalweg {
namespace {

constexpr int64_t kWork = 20'000'000;  // tasks that one search may visit, over all its attempts

int64_t MeanNs(const PlacementProblem& p, const PlacementProblem::Task& t) {
  int64_t sum = 0;
  const std::vector<int32_t>& devices = p.groups[size_t(t.group)].devices;
  for (int32_t d : devices) sum += t.ns[size_t(d)];
  return devices.empty() ? 0 : sum / int64_t(devices.size());
}

}  // namespace

// ---- The model of a step ----

// A partly scheduled step.
struct StepModel::Run {
  explicit Run(const PlacementProblem& problem)
      : p(problem), device_free(p.memory.size(), 0), end(p.tasks.size(), 0), there(p.values.size()), home(p.values.size(), 0) {
    for (size_t v = 0; v < p.values.size(); ++v) there[v].assign(p.capacity.size(), -1);
    for (size_t v = 0; v < p.values.size(); ++v) {
      if (p.values[v].maker < 0) there[v][0] = 0;
    }
  }

  // Returns when the value is in the memory; one copy serves all readers there.
  int64_t Arrival(int32_t v, int32_t memory, bool commit) {
    std::vector<int64_t>& at = there[size_t(v)];
    if (at[size_t(memory)] >= 0) return at[size_t(memory)];
    const int32_t from = home[size_t(v)];
    const std::pair<int32_t, int32_t> channel = {from, memory};
    auto free = channel_free.find(channel);
    const int64_t start = std::max(at[size_t(from)], free == channel_free.end() ? 0 : free->second);
    const int64_t arrival = start + p.copy_ns(from, memory, p.values[size_t(v)].bytes);
    if (commit) {
      channel_free[channel] = arrival;
      at[size_t(memory)] = arrival;
    }
    return arrival;
  }

  int64_t Start(int32_t t, int32_t device, bool commit) {
    int64_t start = device_free[size_t(device)];
    for (int32_t v : p.tasks[size_t(t)].reads) start = std::max(start, Arrival(v, p.memory[size_t(device)], commit));
    for (int32_t other : p.tasks[size_t(t)].after) start = std::max(start, end[size_t(other)]);
    return start;
  }

  void Place(int32_t t, int32_t device, const std::vector<int32_t>& made) {
    const int64_t over = Start(t, device, true) + p.tasks[size_t(t)].ns[size_t(device)];
    device_free[size_t(device)] = end[size_t(t)] = over;
    for (int32_t v : made) {
      home[size_t(v)] = p.memory[size_t(device)];
      there[size_t(v)][size_t(p.memory[size_t(device)])] = over;
    }
    last = std::max(last, over);
  }

  const PlacementProblem& p;
  std::vector<int64_t> device_free, end;
  std::vector<std::vector<int64_t>> there;  // per value and memory: the time from which it is there; -1: never
  std::vector<int32_t> home;                // per value: the memory in which it was made
  std::map<std::pair<int32_t, int32_t>, int64_t> channel_free;
  int64_t last = 0;
};

// Rank: the least time that the tasks after a task take, on average devices.
StepModel::StepModel(const PlacementProblem& problem) : p_(problem), made_(p_.tasks.size()) {
  for (size_t v = 0; v < p_.values.size(); ++v) {
    if (p_.values[v].maker >= 0) made_[size_t(p_.values[v].maker)].push_back(int32_t(v));
  }
  std::vector<int64_t> rank(p_.tasks.size(), 0);
  for (size_t t = p_.tasks.size(); t-- > 0;) {
    rank[t] += MeanNs(p_, p_.tasks[t]) + 1;
    for (int32_t v : p_.tasks[t].reads) {
      const int32_t maker = p_.values[size_t(v)].maker;
      if (maker >= 0) rank[size_t(maker)] = std::max(rank[size_t(maker)], rank[t]);
    }
    for (int32_t other : p_.tasks[t].after) rank[size_t(other)] = std::max(rank[size_t(other)], rank[t]);
  }
  order_.resize(p_.tasks.size());
  std::iota(order_.begin(), order_.end(), 0);
  std::stable_sort(order_.begin(), order_.end(), [&](int32_t a, int32_t b) { return rank[size_t(a)] > rank[size_t(b)]; });
}

PlacementCost StepModel::Cost(const Assignment& where) const {
  Run run(p_);
  for (int32_t t : order_) run.Place(t, where[size_t(p_.tasks[size_t(t)].group)], made_[size_t(t)]);
  PlacementCost cost;
  for (size_t v = 0; v < p_.values.size(); ++v) {
    if (p_.values[v].fetched) run.last = std::max(run.last, run.Arrival(int32_t(v), 0, true));
  }
  cost.ns = run.last;
  // A value takes memory from its arrival until its last reader there ends.
  std::vector<std::vector<std::pair<int64_t, int64_t>>> changes(p_.capacity.size());
  std::vector<int64_t> until(p_.values.size() * p_.capacity.size(), -1);
  for (size_t t = 0; t < p_.tasks.size(); ++t) {
    const auto memory = size_t(p_.memory[size_t(where[size_t(p_.tasks[t].group)])]);
    for (int32_t v : p_.tasks[t].reads) {
      int64_t& last = until[size_t(v) * p_.capacity.size() + memory];
      last = std::max(last, run.end[t]);
    }
  }
  for (size_t v = 0; v < p_.values.size(); ++v) {
    for (size_t m = 0; m < p_.capacity.size(); ++m) {
      if (run.there[v][m] < 0 || p_.capacity[m] == 0) continue;
      const int64_t end = p_.values[v].fetched ? run.last : std::max(until[v * p_.capacity.size() + m], run.there[v][m]);
      changes[m].emplace_back(run.there[v][m], int64_t(p_.values[v].bytes));
      changes[m].emplace_back(end + 1, -int64_t(p_.values[v].bytes));
    }
  }
  for (size_t m = 0; m < changes.size(); ++m) {
    std::sort(changes[m].begin(), changes[m].end());
    int64_t now = 0, most = 0;
    for (const auto& [at, bytes] : changes[m]) most = std::max(most, now += bytes);
    if (uint64_t(most) > p_.capacity[m]) cost.over += uint64_t(most) - p_.capacity[m];
  }
  return cost;
}

Assignment StepModel::ListSchedule() const {
  Assignment where(p_.groups.size(), -1);
  Run run(p_);
  for (int32_t t : order_) {
    const int32_t g = p_.tasks[size_t(t)].group;
    if (where[size_t(g)] < 0) {
      int64_t best = INT64_MAX;
      for (int32_t d : p_.groups[size_t(g)].devices) {
        int64_t over = run.Start(t, d, false);
        for (int32_t other : p_.groups[size_t(g)].tasks) over += p_.tasks[size_t(other)].ns[size_t(d)];
        if (over < best) {
          best = over;
          where[size_t(g)] = d;
        }
      }
    }
    run.Place(t, where[size_t(g)], made_[size_t(t)]);
  }
  return where;
}

// ---- The search ----

namespace {

class Search {
 public:
  explicit Search(const PlacementProblem& p)
      : p_(p), model_(p), tries_(std::max<int64_t>(kWork / std::max<int64_t>(int64_t(p.tasks.size()), 1), 50)) {
    for (size_t g = 0; g < p_.groups.size(); ++g) {
      if (p_.groups[g].devices.size() > 1) free_.push_back(int32_t(g));
    }
    for (const auto& t : p_.tasks) {
      for (int32_t v : t.reads) {
        const int32_t maker = p_.values[size_t(v)].maker;
        if (maker < 0) continue;
        const int32_t from = p_.tasks[size_t(maker)].group;
        if (from != t.group) pairs_.emplace_back(from, t.group);
      }
    }
    std::sort(pairs_.begin(), pairs_.end());
    pairs_.erase(std::unique(pairs_.begin(), pairs_.end()), pairs_.end());
  }

  Assignment Best() {
    Try(Simplest());
    for (size_t d = 0; d < p_.memory.size(); ++d) Try(AllOn(int32_t(d)));
    Try(model_.ListSchedule());
    // Climbs from the best guess, then from assignments near the best one found, while the budget
    // of tries lasts.
    Climb(best_, best_cost_);
    const size_t rounds = std::clamp<size_t>(600 / std::max<size_t>(free_.size(), 1), 12, 60);
    for (size_t round = 0; round < rounds && tries_ > 0 && !free_.empty(); ++round) {
      Assignment from = best_;
      for (size_t k = 0; k < 2 + free_.size() / 8; ++k) {
        const int32_t g = free_[random_() % free_.size()];
        const auto& devices = p_.groups[size_t(g)].devices;
        from[size_t(g)] = devices[random_() % devices.size()];
      }
      Climb(from, model_.Cost(from));
    }
    return best_;
  }

 private:
  Assignment Simplest() const {
    Assignment where;
    for (const auto& g : p_.groups) where.push_back(g.devices[0]);
    return where;
  }
  bool Admits(int32_t g, int32_t d) const {
    const auto& devices = p_.groups[size_t(g)].devices;
    return std::find(devices.begin(), devices.end(), d) != devices.end();
  }
  Assignment AllOn(int32_t d) const {
    Assignment where = Simplest();
    for (int32_t g : free_) {
      if (Admits(g, d)) where[size_t(g)] = d;
    }
    return where;
  }
  void Try(Assignment where) {
    const PlacementCost cost = model_.Cost(where);
    if (!best_.empty() && !(cost < best_cost_)) return;
    best_ = std::move(where);
    best_cost_ = cost;
  }

  // Moves one group, or two that share a value, as long as that makes the step faster.
  void Climb(Assignment where, PlacementCost cost) {
    std::vector<int32_t> groups = free_;
    for (bool better = true; better && tries_ > 0;) {
      better = false;
      std::shuffle(groups.begin(), groups.end(), random_);
      for (int32_t g : groups) {
        for (int32_t d : p_.groups[size_t(g)].devices) better |= Move({g}, d, &where, &cost);
      }
      if (better) continue;
      for (const auto& [a, b] : pairs_) {
        for (int32_t d : p_.groups[size_t(a)].devices) {
          if (Admits(b, d)) better |= Move({a, b}, d, &where, &cost);
        }
        if (p_.groups[size_t(a)].devices.size() > 1 || p_.groups[size_t(b)].devices.size() > 1) better |= Swap(a, b, &where, &cost);
      }
    }
    if (cost < best_cost_) {
      best_ = std::move(where);
      best_cost_ = cost;
    }
  }

  bool Keep(const Assignment& other, Assignment* where, PlacementCost* cost) {
    if (tries_-- <= 0) return false;
    const PlacementCost c = model_.Cost(other);
    if (!(c < *cost)) return false;
    *where = other;
    *cost = c;
    return true;
  }
  bool Move(std::initializer_list<int32_t> groups, int32_t d, Assignment* where, PlacementCost* cost) {
    Assignment other = *where;
    for (int32_t g : groups) other[size_t(g)] = d;
    return other != *where && Keep(other, where, cost);
  }
  bool Swap(int32_t a, int32_t b, Assignment* where, PlacementCost* cost) {
    Assignment other = *where;
    std::swap(other[size_t(a)], other[size_t(b)]);
    if (other == *where || !Admits(a, other[size_t(a)]) || !Admits(b, other[size_t(b)])) return false;
    return Keep(other, where, cost);
  }

  const PlacementProblem& p_;
  const StepModel model_;
  int64_t tries_;
  std::vector<int32_t> free_;                       // groups with more than one device
  std::vector<std::pair<int32_t, int32_t>> pairs_;  // groups that share a value
  std::minstd_rand random_;                         // the same sequence in every process
  Assignment best_;
  PlacementCost best_cost_;
};

}  // namespace

Assignment SearchPlacement(const PlacementProblem& problem) { return Search(problem).Best(); }

Assignment PlaceExhaustively(const PlacementProblem& problem) {
  const StepModel model(problem);
  std::vector<size_t> choice(problem.groups.size(), 0);
  Assignment where(choice.size()), best;
  PlacementCost least;
  for (;;) {
    for (size_t g = 0; g < choice.size(); ++g) where[g] = problem.groups[g].devices[choice[g]];
    if (const PlacementCost cost = model.Cost(where); best.empty() || cost < least) {
      best = where;
      least = cost;
    }
    size_t g = 0;
    while (g < choice.size() && ++choice[g] == problem.groups[g].devices.size()) choice[g++] = 0;
    if (g == choice.size()) return best;
  }
}

}  // namespace thalweg
