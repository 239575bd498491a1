// NodeTexts: what a trace says of the nodes of a plan under certain shapes, whatever happens in a step. Made when a step of a plan is first
// watched, kept by the step state and shared with the statistics. Immutable. Threads: any.
#pragma once
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace thalweg {

struct Plan;
struct PlanShapes;

// A value's type and dims among other numbers, and back.
void AddDims(uint32_t dtype, const int64_t* dims, int32_t rank, std::vector<int64_t>* to);
constexpr int64_t kOutputsFollow = -1;  // in place of a type
// "float [2, 3], float [3, 4] -> float [2, 4]"
std::string DimsText(const std::vector<int64_t>& all);

struct NodeTexts {
  struct Node {
    const char *name, *op, *device, *kernel, *to;
    const char* shapes;  // "" where only running tells
    bool copy = false;
    uint64_t output_bytes = 0;    // of one that is told of no output as it runs: its kernel's call is all there is to it
    std::vector<uint32_t> after;  // nodes that it waits for
  };
  std::vector<Node> nodes;          // of the plan
  size_t n_after = 0;               // of all of them
  bool asides = false;              // some have shapes that only running tells, or work in queues of devices
  std::vector<const char*> frames;  // names, of a plan with control flow
  static std::shared_ptr<const NodeTexts> Of(const Plan& plan, const PlanShapes& shapes);

 private:
  const char* Keep(std::string text) { return texts_.insert(std::move(text)).first->c_str(); }
  std::set<std::string> texts_;
};

}  // namespace thalweg
