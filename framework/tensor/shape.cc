#include "framework/tensor/shape.h"

namespace thalweg {

std::string ShapeText(const int64_t* dims, int32_t rank) {
  if (rank < 0) return "unknown";
  std::string s = "[";
  for (int32_t i = 0; i < rank; ++i) {
    if (i) s += ", ";
    s += dims[i] < 0 ? "?" : std::to_string(dims[i]);
  }
  return s + "]";
}

bool Shape::known() const {
  if (!known_rank_) return false;
  for (int64_t d : dims_) {
    if (d < 0) return false;
  }
  return true;
}

bool Shape::Admits(const int64_t* dims, int32_t rank) const {
  bool fits = !known_rank_ || rank == this->rank();
  for (int32_t k = 0; fits && known_rank_ && k < rank; ++k) fits = dim(k) < 0 || dim(k) == dims[k];
  return fits;
}

bool Shape::Admits(const Shape& o) const {
  if (!known_rank_ || !o.known_rank_) return true;
  if (dims_.size() != o.dims_.size()) return false;
  for (size_t i = 0; i < dims_.size(); ++i) {
    if (dims_[i] >= 0 && o.dims_[i] >= 0 && dims_[i] != o.dims_[i]) return false;
  }
  return true;
}

StatusOr<Shape> MergeShapes(const Shape& a, const Shape& b) {
  if (!a.has_rank()) return b;
  if (!b.has_rank()) return a;
  if (!a.Admits(b)) return InvalidArgument("shapes ", a.text(), " and ", b.text(), " contradict each other");
  std::vector<int64_t> dims = a.dims();
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] < 0) dims[i] = b.dims()[i];
  }
  return Shape(std::move(dims));
}

}  // namespace thalweg
