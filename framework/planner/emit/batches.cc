#include "framework/planner/emit/batches.h"

#include <algorithm>

#include "framework/runtime/devices/device.h"

namespace thalweg {
namespace {

// Fewer nodes are not worth a second thread; more might make so many batches that these cannot
// share memory (layout.cc).
constexpr size_t kFewest = 64, kMost = 12288;
constexpr size_t kBatchesPerThread = 16, kSmallestBatch = 4;

// Returns true if the node may run out of the plan's order: it has no effects, takes no locks and
// ends within the call.
bool IsPlain(const PlanNode& n) {
  if (n.kind != PlanNode::kKernel || !n.run.kernel || n.run.opens() || !n.run.device->host_memory()) return false;
  return !n.run.async && !n.run.kernel->spec.may_block && !n.run.node->op().stateful;
}

class Cutter {
 public:
  Cutter(const Plan& plan, size_t most) : p_(plan), most_(most), makers_(plan.nodes.size()) {}

  std::vector<PlanBatch> Cut() {
    for (size_t i = 0; i < p_.nodes.size(); ++i) {
      if (!Joins(i)) Begin(i);
      const int32_t batch = int32_t(batches_.size()) - 1;
      batches_.back().end = int32_t(i) + 1;
      for (int32_t k : p_.nodes[i].next) {
        std::vector<int32_t>& all = makers_[size_t(k)];
        if (all.empty() || all.back() != batch) all.push_back(batch);
      }
    }
    return std::move(batches_);
  }

 private:
  // Node i joins the last batch if it continues work of that batch or waits for exactly the same
  // batches, so no node waits for more than its own makers. A continuing node may make a batch
  // twice as large, since a cut there would make the next batch wait for this one.
  bool Joins(size_t i) const {
    if (batches_.empty()) return false;
    const PlanBatch& last = batches_.back();
    const size_t size = size_t(last.end - last.begin);
    const std::vector<int32_t>&waits = makers_[size_t(last.begin)], &makers = makers_[i];
    if (makers == waits) return size < most_;
    if (size >= 2 * most_ || makers.empty() || makers.back() != int32_t(batches_.size()) - 1) return false;
    return std::all_of(makers.begin(), makers.end() - 1, [&](int32_t b) { return std::binary_search(waits.begin(), waits.end(), b); });
  }

  void Begin(size_t i) {
    const int32_t batch = int32_t(batches_.size());
    for (int32_t b : makers_[i]) batches_[size_t(b)].next.push_back(batch);
    batches_.push_back({.begin = int32_t(i), .end = int32_t(i), .pending = int32_t(makers_[i].size()), .next = {}});
  }

  const Plan& p_;
  const size_t most_;
  std::vector<PlanBatch> batches_;
  std::vector<std::vector<int32_t>> makers_;  // per node: the batches that it waits for, ascending
};

// Returns true if at least a quarter of the nodes can run beside others, and batches hold several
// nodes on average.
bool Worthwhile(const std::vector<PlanBatch>& batches, size_t nodes) {
  std::vector<size_t> before(batches.size(), 0);  // nodes on the longest path to the batch
  size_t longest = 0;
  for (size_t b = 0; b < batches.size(); ++b) {
    const size_t reached = before[b] + size_t(batches[b].end - batches[b].begin);
    longest = std::max(longest, reached);
    for (int32_t k : batches[b].next) before[size_t(k)] = std::max(before[size_t(k)], reached);
  }
  return longest * 4 <= nodes * 3 && batches.size() * 3 <= nodes;
}

}  // namespace

void FormBatches(const PlanOptions& options, Plan* plan) {
  plan->batches.clear();
  const size_t n = plan->nodes.size();
  if (options.engine != "auto" || options.threads < 2 || plan->counted || plan->prioritized || n < kFewest || n > kMost) return;
  if (!std::all_of(plan->nodes.begin(), plan->nodes.end(), IsPlain)) return;
  std::vector<PlanBatch> batches = Cutter(*plan, std::max(kSmallestBatch, n / (kBatchesPerThread * options.threads))).Cut();
  if (Worthwhile(batches, n)) plan->batches = std::move(batches);
}

}  // namespace thalweg
