#include "framework/graph/folding_budget.h"

#include <utility>

#include "framework/base/dtype.h"
#include "framework/base/monotonic.h"
#include "framework/tensor/memory_budget.h"
#include "framework/tensor/texts.h"

namespace thalweg {
namespace {

// Limit for all known values of a graph, in bytes.
constexpr uint64_t kMostKnown = 64u << 20;
// The memory that the computation of one value has at least, temporary memory of kernels included.
// Its input strings are limited to far less: a kernel may read them as often as a pattern requires.
constexpr uint64_t kMostForOne = 1u << 20, kMostText = 64u << 10;
// Values for shape rules take microseconds, so their number does not matter; only slower
// computations are counted.
constexpr int64_t kQuickNs = 100'000, kMostSlowNs = 2'000'000'000;

uint64_t TextBytes(std::span<const Tensor> values) {
  uint64_t bytes = 0;
  for (const Tensor& t : values) {
    if (t && BaseType(t.dtype()) == TW_STRING) bytes += TextsOf(t.get()).bytes();
  }
  return bytes;
}

}  // namespace

FoldingBudget::FoldingBudget() : all_(MemoryBudget::Create(kMostKnown, "the graph's known values")) {}
FoldingBudget::~FoldingBudget() {
  if (one_) one_->Release();
  all_->Release();
}

// Returns an account for one computation. Values stay charged to the account with which they were
// computed, so small values share one: it has room for two, and a new one is made when it is half
// full.
MemoryBudget* FoldingBudget::AccountForOne() {
  std::lock_guard lock(mu_);
  if (one_ && one_->used() > kMostForOne) std::exchange(one_, nullptr)->Release();
  if (!one_) one_ = MemoryBudget::Create(2 * kMostForOne, "a value that is computed while the graph is built", all_);
  one_->Retain();
  return one_;
}

StatusOr<std::vector<Tensor>> FoldingBudget::Evaluate(GraphHost& host, const Node& node, std::span<const tw_shape> shapes,
                                                      std::span<const Tensor> values) {
  if (slow_ns_.load(std::memory_order_relaxed) > kMostSlowNs) return ResourceExhausted("the graph has spent its time for known values");
  if (TextBytes(values) > kMostText) return ResourceExhausted("its strings are too long to be looked at while the graph is built");
  struct Account {
    MemoryBudget* budget;
    ~Account() { budget->Release(); }
  } one{AccountForOne()};
  const int64_t begin = MonotonicNs();
  auto known = host.Evaluate(node, shapes, values, one.budget);
  const int64_t took = MonotonicNs() - begin;
  if (took > kQuickNs) slow_ns_.fetch_add(took, std::memory_order_relaxed);
  return known;
}

}  // namespace thalweg
