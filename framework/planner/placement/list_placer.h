// Assigns tasks to devices by the costs of tasks and of copies between memories: list scheduling,
// then local search. It does not depend on graphs. Threads: one.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

namespace thalweg {

struct PlacementProblem {
  struct Task {
    int32_t group = 0;
    std::vector<int64_t> ns;     // per device; set for those that its group may run on
    std::vector<int32_t> reads;  // values that the task reads, each once
    std::vector<int32_t> after;  // further tasks that it waits for
  };
  struct Value {
    int32_t maker = -1;  // a task; -1 if the value is in host memory from the beginning
    uint64_t bytes = 0;
    bool fetched = false;  // the value has to be in host memory at the end
  };
  // Tasks that share a device.
  struct Group {
    std::vector<int32_t> tasks;
    std::vector<int32_t> devices;  // devices that the group may run on, the simplest choice first
  };
  std::vector<Task> tasks;  // in an order that respects dependencies
  std::vector<Value> values;
  std::vector<Group> groups;
  std::vector<int32_t> memory;     // per device: the memory that holds its values; 0 is host memory
  std::vector<uint64_t> capacity;  // per memory, in bytes; 0 means no limit
  std::function<int64_t(int32_t from, int32_t to, uint64_t bytes)> copy_ns;  // between memories
};

using Assignment = std::vector<int32_t>;  // per group, a device

struct PlacementCost {
  int64_t ns = 0;
  uint64_t over = 0;  // bytes that exceed the capacities, over all memories
  bool operator<(const PlacementCost& o) const { return over != o.over ? over < o.over : ns < o.ns; }
};

// Models the time of a step. Each device runs its tasks one after the other, by rank; each pair of
// memories has its own queue for copies.
class StepModel {
 public:
  explicit StepModel(const PlacementProblem& problem);
  PlacementCost Cost(const Assignment& where) const;
  // The first guess: takes the tasks by rank and puts each group on the device where its first task
  // ends first.
  Assignment ListSchedule() const;

 private:
  struct Run;
  const PlacementProblem& p_;
  std::vector<int32_t> order_;              // of tasks, by rank
  std::vector<std::vector<int32_t>> made_;  // values, per task
};

// Returns the best assignment found in time that grows little more than linearly with the problem.
Assignment SearchPlacement(const PlacementProblem& problem);
// Returns the best of all assignments. REQUIRES: few groups.
Assignment PlaceExhaustively(const PlacementProblem& problem);

}  // namespace thalweg
