// Shape: sizes per axis where the rank or any size may be unknown. A value type.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "thalweg/types.h"

namespace thalweg {

// "[2, ?, 3]"; "unknown" for rank -1.
std::string ShapeText(const int64_t* dims, int32_t rank);

class Shape {
 public:
  Shape() = default;  // rank unknown
  Shape(std::initializer_list<int64_t> dims) : known_rank_(true), dims_(dims) {}
  explicit Shape(std::vector<int64_t> dims) : known_rank_(true), dims_(std::move(dims)) {}
  // rank < 0: unknown.
  Shape(const int64_t* dims, int32_t rank) : known_rank_(rank >= 0) {
    if (rank > 0) dims_.assign(dims, dims + rank);
  }
  explicit Shape(const tw_shape& s) : Shape(s.dims, s.rank) {}

  int32_t rank() const { return known_rank_ ? int32_t(dims_.size()) : -1; }
  bool has_rank() const { return known_rank_; }
  int64_t dim(int32_t i) const { return dims_[size_t(i)]; }
  const std::vector<int64_t>& dims() const { return dims_; }
  // Rank and every size known.
  bool known() const;
  tw_shape c() const { return {dims_.data(), rank(), 0}; }
  std::string text() const { return ShapeText(dims_.data(), rank()); }
  bool operator==(const Shape& o) const { return known_rank_ == o.known_rank_ && dims_ == o.dims_; }
  // A shape that is unknown in places could turn out to be `o`.
  bool Admits(const Shape& o) const;
  bool Admits(const int64_t* dims, int32_t rank) const;  // all known
  // Exactly these dims.
  bool Is(const int64_t* dims, int32_t rank) const { return rank == this->rank() && std::equal(dims, dims + rank, dims_.begin()); }

 private:
  bool known_rank_ = false;
  std::vector<int64_t> dims_;
};

// What both say: unknown places are filled from the other. INVALID_ARGUMENT if they contradict each other.
StatusOr<Shape> MergeShapes(const Shape& a, const Shape& b);

}  // namespace thalweg
