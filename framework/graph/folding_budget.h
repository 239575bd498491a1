// FoldingBudget: what the values may cost that a graph works out from constants while it is built, in bytes and in time. Nothing else
// limits them: there is no session yet. Beyond, nodes have no known value, and are computed when they run. Threads: any.
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

  // The values of the node's outputs. Errors: RESOURCE_EXHAUSTED where there is no more to spend; those of EvaluateOnHost.
  StatusOr<std::vector<Tensor>> Evaluate(Runtime& runtime, const Node& node, std::span<const tw_shape> shapes,
                                         std::span<const Tensor> values);

 private:
  MemoryBudget* AccountForOne();  // the caller's to release
  MemoryBudget* const all_;
  std::mutex mu_;
  MemoryBudget* one_ = nullptr;  // guarded by mu_
  std::atomic<int64_t> slow_ns_{0};
};

}  // namespace thalweg
