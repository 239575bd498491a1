// Checks indices that select rows before any data is read or written, and sums rows in an order
// that does not depend on threads.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_COMMON_ROWS_H_
#define THALWEG_PLUGINS_CPU_KERNELS_COMMON_ROWS_H_

#include <limits>

#include "kernels/common/arithmetic.h"
#include "kernels/common/element.h"
#include "kernels/common/parallel.h"

namespace thalweg::cpu {

// Returns true if low <= v[i] < limit for all i. The compiler can vectorise the loops.
inline bool AllInside(const tw_view* v, int64_t low, int64_t limit) {
  const auto all = [&](const auto* p) {
    bool outside = false;
    for (uint64_t i = 0; i < v->count; ++i) outside |= int64_t(p[i]) < low || int64_t(p[i]) >= limit;
    return !outside;
  };
  const char* p = Bytes(v);
  switch (v->dtype) {
    case TW_INT32: return all(reinterpret_cast<const int32_t*>(p));
    case TW_INT64: return all(reinterpret_cast<const int64_t*>(p));
    default: {
      bool inside = true;
      for (uint64_t i = 0; inside && i < v->count; ++i) inside = IndexAt(v, i) >= low && IndexAt(v, i) < limit;
      return inside;
    }
  }
}

// Throws INVALID_ARGUMENT unless low <= v[i] < limit for all i. The message names the first
// offender.
inline void CheckIndices(const tw_view* v, int64_t low, int64_t limit, const char* what) {
  if (AllInside(v, low, limit)) return;
  for (uint64_t i = 0; i < v->count; ++i) {
    const int64_t at = IndexAt(v, i);
    if (at < low || at >= limit) {
      const bool bounded = low > std::numeric_limits<int64_t>::min();
      Invalid(
          std::string(what) + PositionText(v, i) + " = " + std::to_string(at) +
          (bounded ? " is not in [" + std::to_string(low) + ", " + std::to_string(limit) + ")" : " is not below " + std::to_string(limit)));
    }
  }
}

// Throws UNIMPLEMENTED for any bad_indices_policy but 'ERROR' and the default: indices outside a
// tensor are always an error.
inline void WantBadIndicesRefused(const tw::Node& n) {
  const std::string_view policy = n.s("bad_indices_policy");
  if (!policy.empty() && policy != "DEFAULT" && policy != "ERROR")
    throw tw::Error{TW_UNIMPLEMENTED, "bad_indices_policy '" + std::string(policy) + "' is not offered; use 'ERROR'"};
}

// The index vectors in the last axis of `indices`, each of which selects a slice of a tensor with
// these dims.
class SliceIndex {
 public:
  // Throws INVALID_ARGUMENT for a vector that points outside the tensor; the message names the
  // vector.
  SliceIndex(const tw_view* indices, const int64_t* dims, int rank) : indices_(indices) {
    depth_ = indices->rank > 0 ? int(indices->dims[indices->rank - 1]) : 1;
    if (depth_ > rank) {
      Invalid("indices of shape " + DimsText(indices) + " hold vectors of " + std::to_string(depth_) + " for a tensor of shape " +
              tw::text(dims, rank));
    }
    rows = indices->rank > 0 ? Product(indices->dims, 0, indices->rank - 1) : 1;
    inner = Product(dims, depth_, rank);
    int64_t step = inner;
    steps_.n = depth_;
    for (int i = depth_; i-- > 0; step *= dims[i]) steps_[i] = step;
    if (indices->count == 0) return;  // an empty tensor may have any number of rows
    if (depth_ == 1 ? AllInside(indices, 0, dims[0]) : AllRowsInside(dims)) return;
    for (int64_t row = 0; row < rows; ++row) Check(row, dims, rank);
  }
  // Returns the offset of the first element of a row's slice.
  int64_t operator()(int64_t row) const {
    int64_t at = 0;
    for (int i = 0; i < depth_; ++i) at += IndexAt(indices_, uint64_t(row * depth_ + i)) * steps_[i];
    return at;
  }
  // Throws INVALID_ARGUMENT unless `updates` has one element for each element of the slices.
  void WantUpdates(const tw_view* updates) const {
    if (rows * inner != int64_t(updates->count)) {
      Invalid("updates of shape " + DimsText(updates) + " for " + std::to_string(rows) + " slices of " + std::to_string(inner) +
              " elements");
    }
  }
  int64_t rows, inner;  // the number of vectors; the elements of a slice

 private:
  // Does the work of AllInside for vectors of 32- and 64-bit integers. Returns false for other
  // types, which Check examines.
  bool AllRowsInside(const int64_t* dims) const {
    const auto all = [&](const auto* p) {
      bool outside = false;
      for (int64_t row = 0; row < rows; ++row, p += depth_)
        for (int i = 0; i < depth_; ++i) outside |= int64_t(p[i]) < 0 || int64_t(p[i]) >= dims[i];
      return !outside;
    };
    const char* p = Bytes(indices_);
    return (indices_->dtype == TW_INT32 && all(reinterpret_cast<const int32_t*>(p))) ||
           (indices_->dtype == TW_INT64 && all(reinterpret_cast<const int64_t*>(p)));
  }
  void Check(int64_t row, const int64_t* dims, int rank) const {
    for (int i = 0; i < depth_; ++i) {
      const uint64_t k = uint64_t(row * depth_ + i);
      const int64_t at = IndexAt(indices_, k);
      if (at < 0 || at >= dims[i]) {
        Invalid("indices" + PositionText(indices_, k) + " = " + std::to_string(at) + " is not in [0, " + std::to_string(dims[i]) +
                "), the size of axis " + std::to_string(i) + " of " + tw::text(dims, rank));
      }
    }
  }

  const tw_view* indices_;
  int depth_;
  Ints steps_;
};

// A slice that an index selects is seldom in a cache, so callers prefetch it a few slices ahead.
// For long slices only the first 512 bytes are prefetched; the processor's own prefetcher fetches
// the rest.
inline void Prefetch(const char* slice, size_t bytes) {
  for (size_t i = 0; i < std::min<size_t>(bytes, 512); i += 64) __builtin_prefetch(slice + i);
}

inline constexpr int64_t kAhead = 8;  // slices

// Calls body(row, at, begin, end) for each row in order, for columns [begin, end) of the `inner`
// columns. `at` = target(row) is an offset among `count` elements. Rows with a negative target are
// skipped. Updates of one element run in the order of the rows: threads divide long rows by
// columns. They divide other rows by target range, and each thread looks at all targets. Short rows
// run on one thread. ahead(at) announces that the body reaches `at` soon.
template <class Target, class Body, class Ahead>
void ForTargets(const tw_frame* f, int64_t rows, int64_t inner, int64_t count, Target&& target, Body&& body, Ahead&& ahead) {
  // A single thread updates fewer elements than kLeast faster than another processor fetches half
  // of them from this one's cache.
  constexpr int64_t kLong = 4096, kShort = 16, kColumns = 1024, kBlock = 256, kLeast = 4 * kGrain;
  if (rows == 0 || inner == 0) return;  // the tensor is empty, so the other size may be any number
  // Rows in the range are collected kBlock at a time, by a loop without branches that the processor
  // would have to predict.
  const auto go = [&](int64_t from, int64_t to, int64_t begin, int64_t end) {
    int64_t found[kBlock], at[kBlock];
    for (int64_t first = 0; first < rows; first += kBlock) {
      int64_t n = 0;
      for (int64_t row = first; row < std::min(rows, first + kBlock); ++row) {
        found[n] = row;
        at[n] = target(row);
        n += at[n] >= from && at[n] < to;
      }
      for (int64_t k = 0; k < n; ++k) {
        if (k + kAhead < n) ahead(at[k + kAhead]);
        body(found[k], at[k], begin, end);
      }
    }
  };
  if (inner < kShort || rows < kLeast / inner) return go(0, count, 0, inner);
  if (inner >= kLong) {
    const int64_t columns = std::max(kColumns, kGrain / std::min(kGrain, 2 * rows));
    return tw::Frame{f}.parallel(uint64_t(inner), uint64_t(columns),
                                 [&](uint64_t begin, uint64_t end) { go(0, count, int64_t(begin), int64_t(end)); });
  }
  const uint64_t threads = f->host->run->threads(f);
  tw::Frame{f}.parallel(uint64_t(count), (uint64_t(count) + threads - 1) / threads,
                        [&](uint64_t from, uint64_t to) { go(int64_t(from), int64_t(to), 0, inner); });
}

// Computes to[target(row) + j] = combine(to[target(row) + j], from[row * inner + j]) for each row
// in order, as ForTargets does.
template <class Acc, class T, class Target, class Combine>
void CombineRows(const tw_frame* f, Acc* to, int64_t count, const T* from, int64_t rows, int64_t inner, Target&& target,
                 Combine&& combine) {
  ForTargets(
      f, rows, inner, count, target,
      [&](int64_t row, int64_t at, int64_t begin, int64_t end) {
        for (int64_t j = begin; j < end; ++j) to[at + j] = combine(to[at + j], from[row * inner + j]);
      },
      [&](int64_t at) { Prefetch(reinterpret_cast<const char*>(to + at), size_t(inner) * sizeof *to); });
}

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_COMMON_ROWS_H_
