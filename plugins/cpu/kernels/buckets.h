// Sorts rows by target, for ops that add up rows at indices. Each target takes its rows in their
// original order. Threads may therefore divide the targets, and the result does not depend on the
// threads.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_BUCKETS_H_
#define THALWEG_PLUGINS_CPU_KERNELS_BUCKETS_H_

#include <algorithm>
#include <numeric>
#include <vector>

#include "kernels/common/parallel.h"
#include "kernels/common/temp.h"

namespace thalweg::cpu {

class Buckets {
 public:
  // target(row) < targets for each row; a row with a negative target goes nowhere.
  template <class Target>
  Buckets(const tw_frame* f, int64_t rows, int64_t targets, Target&& target) : first_(size_t(targets) + 1, f), order_(size_t(rows), f) {
    for (int64_t row = 0; row < rows; ++row)
      if (const int64_t to = target(row); to >= 0) ++first_[size_t(to)];
    int64_t sum = 0;
    for (int64_t& first : first_) sum = first += sum;  // the end of each bucket
    for (int64_t row = rows; row-- > 0;)
      if (const int64_t to = target(row); to >= 0) order_[size_t(--first_[size_t(to)])] = row;
  }
  const int64_t* begin(int64_t target) const { return order_.data() + first_[size_t(target)]; }
  const int64_t* end(int64_t target) const { return order_.data() + first_[size_t(target) + 1]; }
  int64_t rows() const { return int64_t(order_.size()); }
  int64_t targets() const { return int64_t(first_.size()) - 1; }
  int64_t target(int64_t bucket) const { return bucket; }

 private:
  tw::TempVector<int64_t> first_, order_;
};

// Sorts a few rows that go to a few of very many targets. Only targets with rows have buckets, in
// the order of the targets; target(bucket) returns a bucket's target.
class FewBuckets {
 public:
  template <class Target>
  FewBuckets(const tw_frame* f, int64_t rows, Target&& target) : order_(size_t(rows), f), first_(f), targets_(f) {
    std::iota(order_.begin(), order_.end(), 0);
    std::sort(order_.begin(), order_.end(), [&](int64_t a, int64_t b) {
      const int64_t x = target(a), y = target(b);
      return x != y ? x < y : a < b;
    });
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t to = target(order_[size_t(i)]);
      if (!targets_.empty() && targets_.back() == to) continue;
      targets_.push_back(to);
      first_.push_back(i);
    }
    first_.push_back(rows);
  }
  const int64_t* begin(int64_t bucket) const { return order_.data() + first_[size_t(bucket)]; }
  const int64_t* end(int64_t bucket) const { return order_.data() + first_[size_t(bucket) + 1]; }
  int64_t rows() const { return int64_t(order_.size()); }
  int64_t targets() const { return int64_t(targets_.size()); }
  int64_t target(int64_t bucket) const { return targets_[size_t(bucket)]; }

 private:
  tw::TempVector<int64_t> order_, first_, targets_;
};

inline constexpr int64_t kBucketColumns = 256;

// Calls body(bucket, column, n) for all buckets and all of `inner` columns, at most kBucketColumns
// columns at a time. `cost` is the cost of one element of a row.
template <class SomeBuckets, class Body>
void ForBuckets(const tw_frame* f, const SomeBuckets& buckets, int64_t inner, int64_t cost, Body&& body) {
  const int64_t targets = buckets.targets();
  if (targets == 0 || inner == 0) return;
  // The columns of a single target are divided among the threads, in pieces of at least a cache
  // line.
  const int64_t width = targets == 1 ? std::min(kBucketColumns, std::max<int64_t>(16, (inner + 7) / 8)) : kBucketColumns;
  const int64_t chunks = (inner + width - 1) / width, rows = buckets.rows() / targets + 1;
  ParallelFor(f, targets * chunks, Cost(rows, std::min(inner, width), cost), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t column = i % chunks * width;
      body(i / chunks, column, std::min(width, inner - column));
    }
  });
}

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_BUCKETS_H_
