// FoldingBudget: limits the memory and time of the values that a graph computes from constants
// while it is built. Nothing else limits them, because there is no session yet. Beyond the limits
// nodes have no known value and are computed when they run. Threads: any.
#pragma once
#include <atomic>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "framework/base/status.h"
#include "framework/graph/graph.h"

namespace thalweg {

class MemoryBudget;

class FoldingBudget {
 public:
  FoldingBudget();
  ~FoldingBudget();
  FoldingBudget(const FoldingBudget&) = delete;

  // Computes the node's outputs. RESOURCE_EXHAUSTED if the budget is used up; the errors of
  // GraphHost::Evaluate.
  StatusOr<std::vector<Tensor>> Evaluate(GraphHost& host, const Node& node, std::span<const tw_shape> shapes,
                                         std::span<const Tensor> values);

 private:
  MemoryBudget* AccountForOne();  // the caller must release it
  MemoryBudget* const all_;
  std::mutex mu_;
  MemoryBudget* one_ = nullptr;  // guarded by mu_
  std::atomic<int64_t> slow_ns_{0};
};

}  // namespace thalweg
