// NodeTexts: the texts that a trace needs for a plan's nodes under certain shapes, independent of
// one step. Made when a step of the plan is first traced, kept by the step state and shared with
// the statistics. Immutable. Threads: any.
#pragma once
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace thalweg {

struct Plan;
struct PlanShapes;

// AddDims appends a value's type and dims to a list of numbers; DimsText formats such a list.
void AddDims(uint32_t dtype, const int64_t* dims, int32_t rank, std::vector<int64_t>* to);
constexpr int64_t kOutputsFollow = -1;  // separates inputs from outputs; stands in place of a type
// "float [2, 3], float [3, 4] -> float [2, 4]"
std::string DimsText(const std::vector<int64_t>& all);

struct NodeTexts {
  struct Node {
    const char *name, *op, *device, *kernel, *to;
    const char* shapes;  // "" if known only at run time
    bool copy = false;
    uint64_t output_bytes = 0;    // for a node whose outputs are not reported at run time: its kernel's call is all that runs
    std::vector<uint32_t> after;  // nodes that it waits for
  };
  std::vector<Node> nodes;          // of the plan
  size_t n_after = 0;               // sum of the sizes of `after`
  bool asides = false;              // some nodes have shapes known only at run time, or work in device queues
  std::vector<const char*> frames;  // names of the frames, for a plan with control flow
  static std::shared_ptr<const NodeTexts> Of(const Plan& plan, const PlanShapes& shapes);

 private:
  const char* Keep(std::string text) { return texts_.insert(std::move(text)).first->c_str(); }
  std::set<std::string> texts_;
};

}  // namespace thalweg
