#include "framework/tensor/shape.h"

#include "framework/base/checked.h"

namespace thalweg {

std::string Shape::text() const { return ShapeText(data(), rank_); }

bool Shape::known() const {
  return rank_ >= 0 && std::all_of(data(), data() + rank_, [](int64_t d) { return d >= 0; });
}

bool Shape::Admits(const int64_t* dims, int32_t rank) const {
  bool fits = rank_ < 0 || rank == rank_;
  for (int32_t k = 0; fits && k < rank_; ++k) fits = dim(k) < 0 || dim(k) == dims[k];
  return fits;
}

bool Shape::Admits(const Shape& o) const {
  if (rank_ < 0 || o.rank_ < 0) return true;
  if (rank_ != o.rank_) return false;
  for (int32_t k = 0; k < rank_; ++k) {
    if (dim(k) >= 0 && o.dim(k) >= 0 && dim(k) != o.dim(k)) return false;
  }
  return true;
}

Shape Shape::FilledFrom(const Shape& o) const {
  Shape both = *this;
  for (int32_t k = 0; k < rank_; ++k) {
    if (dim(k) < 0) both.data()[k] = o.dim(k);
  }
  return both;
}

StatusOr<Shape> MergeShapes(const Shape& a, const Shape& b) {
  if (!a.has_rank()) return b;
  if (!b.has_rank()) return a;
  if (!a.Admits(b)) return InvalidArgument("shapes ", a.text(), " and ", b.text(), " contradict each other");
  return a.FilledFrom(b);
}

}  // namespace thalweg
