// Shape: the size of each axis; the rank or any size may be unknown. A value type.
#pragma once
#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "framework/base/status.h"
#include "thalweg/types.h"

namespace thalweg {

class Shape {
 public:
  Shape() = default;  // rank unknown
  Shape(std::initializer_list<int64_t> dims) : Shape(std::span(dims.begin(), dims.size())) {}
  explicit Shape(std::span<const int64_t> dims) : Shape(dims.data(), int32_t(dims.size())) {}
  // A negative rank means unknown.
  Shape(const int64_t* dims, int32_t rank) : rank_(std::max(rank, -1)) {
    int64_t* to = inside_;
    if (rank > kInside) {
      outside_ = std::make_unique<int64_t[]>(size_t(rank));
      to = outside_.get();
    }
    if (rank > 0) std::copy_n(dims, rank, to);
  }
  explicit Shape(const tw_shape& s) : Shape(s.dims, s.rank) {}
  Shape(const Shape& o) : Shape(o.data(), o.rank_) {}
  Shape(Shape&& o) noexcept { *this = std::move(o); }
  Shape& operator=(const Shape& o) { return *this = Shape(o); }
  Shape& operator=(Shape&& o) noexcept {
    rank_ = std::exchange(o.rank_, -1);
    std::copy_n(o.inside_, kInside, inside_);
    outside_ = std::move(o.outside_);
    return *this;
  }

  int32_t rank() const { return rank_; }
  bool has_rank() const { return rank_ >= 0; }
  int64_t dim(int32_t i) const { return data()[i]; }
  // The span is valid while the shape lives; moving the shape may invalidate it.
  std::span<const int64_t> dims() const { return {data(), size_t(std::max(rank_, 0))}; }
  // Returns true if the rank and every size are known.
  bool known() const;
  tw_shape c() const { return {data(), rank_, 0}; }
  std::string text() const;
  bool operator==(const Shape& o) const { return Is(o.data(), o.rank_); }
  // Returns true if no known size contradicts `o`.
  bool Admits(const Shape& o) const;
  bool Admits(const int64_t* dims, int32_t rank) const;  // REQUIRES: all of `dims` are known
  // Returns this shape with its unknown sizes taken from `o`. REQUIRES: both have the same rank.
  Shape FilledFrom(const Shape& o) const;
  // Returns true if the shape has exactly these dims.
  bool Is(const int64_t* dims, int32_t rank) const { return rank == rank_ && std::equal(data(), data() + std::max(rank, 0), dims); }

 private:
  static constexpr int32_t kInside = 4;  // axes stored inline, enough for most shapes; longer shapes use the heap
  const int64_t* data() const { return rank_ > kInside ? outside_.get() : inside_; }
  int64_t* data() { return rank_ > kInside ? outside_.get() : inside_; }
  int32_t rank_ = -1;
  int64_t inside_[kInside] = {};
  std::unique_ptr<int64_t[]> outside_;
};

// Combines two shapes: each fills the unknown sizes of the other. INVALID_ARGUMENT if they
// contradict each other.
StatusOr<Shape> MergeShapes(const Shape& a, const Shape& b);

}  // namespace thalweg
