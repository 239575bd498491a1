// Where tasks run, by what they and the copies between memories take: list scheduling, then local search. Knows nothing of graphs.
// Threads: one.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

namespace thalweg {

struct PlacementProblem {
  struct Task {
    int32_t group = 0;
    std::vector<int64_t> ns;     // per device; of those that its group may run on
    std::vector<int32_t> reads;  // values, each once
    std::vector<int32_t> after;  // tasks that it waits for beside those
  };
  struct Value {
    int32_t maker = -1;  // a task; -1: it is in host memory from the beginning
    uint64_t bytes = 0;
    bool fetched = false;  // it has to be in host memory at the end
  };
  // Tasks that share a device.
  struct Group {
    std::vector<int32_t> tasks;
    std::vector<int32_t> devices;  // that it may run on, the simplest choice first
  };
  std::vector<Task> tasks;  // in an order that respects what they wait for
  std::vector<Value> values;
  std::vector<Group> groups;
  std::vector<int32_t> memory;                                               // per device: where its values live; 0 is the host's
  std::vector<uint64_t> capacity;                                            // per memory, bytes; 0: any
  std::function<int64_t(int32_t from, int32_t to, uint64_t bytes)> copy_ns;  // between memories
};

using Assignment = std::vector<int32_t>;  // per group, a device

struct PlacementCost {
  int64_t ns = 0;
  uint64_t over = 0;  // bytes that do not fit, over all memories
  bool operator<(const PlacementCost& o) const { return over != o.over ? over < o.over : ns < o.ns; }
};

// What a step takes if devices run one task after the other, by the ranks of the tasks, and copies have queues of their own, one for each
// pair of memories.
class StepModel {
 public:
  explicit StepModel(const PlacementProblem& problem);
  PlacementCost Cost(const Assignment& where) const;
  // The first guess: the tasks by rank, each group where its first task is over first.
  Assignment ListSchedule() const;

 private:
  struct Run;
  const PlacementProblem& p_;
  std::vector<int32_t> order_;              // of tasks, by rank
  std::vector<std::vector<int32_t>> made_;  // values, per task
};

// The best that was found in time that grows with the problem little more than linearly.
Assignment SearchPlacement(const PlacementProblem& problem);
// The best there is. REQUIRES: few groups.
Assignment PlaceExhaustively(const PlacementProblem& problem);

}  // namespace thalweg
