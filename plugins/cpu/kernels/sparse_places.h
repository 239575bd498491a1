// Places of the stored elements of a sparse tensor: rows of a matrix of indices, one number for each axis.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_SPARSE_PLACES_H_
#define THALWEG_PLUGINS_CPU_KERNELS_SPARSE_PLACES_H_

#include <optional>

#include "kernels/common/element.h"

namespace thalweg::cpu {

// Throws INVALID_ARGUMENT for a size below 0. name: of the input that they come from.
inline void WantSizes(const int64_t* sizes, int n, const char* name) {
  for (int i = 0; i < n; ++i)
    if (sizes[i] < 0)
      Invalid(std::string(name) + "[" + std::to_string(i) + "] = " + std::to_string(sizes[i]) + "; sizes must not be negative");
}

// Threads: reads only.
class SparsePlaces {
 public:
  // indices: [n, rank]; of one axis: [n]; of none: one place. name: of the input. Throws INVALID_ARGUMENT for a place outside of `dims`.
  SparsePlaces(const tw_view* indices, const char* name, const int64_t* dims, int rank) : indices_(indices), name_(name), rank_(rank) {
    count_ = indices->rank > 0 ? indices->dims[0] : 1;
    uint64_t size = 1;
    for (int i = 0; i < rank; ++i) numbered_ &= !__builtin_mul_overflow(size, uint64_t(dims[i]), &size) && size <= INT64_MAX;
    if (numbered_) strides_ = DenseStrides(dims, rank);
    for (int64_t k = 0; rank > 0 && k < count_; ++k)
      for (int i = 0; i < rank; ++i)
        if (At(k, i) < 0 || At(k, i) >= dims[i]) Invalid(Text(k) + " is outside of the shape " + tw::text(dims, rank));
  }

  int64_t count() const { return count_; }
  // Whether a number says which place it is.
  bool numbered() const { return numbered_; }
  // Where place k is in a dense tensor. REQUIRES: numbered().
  int64_t operator()(int64_t k) const {
    int64_t at = 0;
    for (int i = 0; i < rank_; ++i) at += At(k, i) * strides_[i];
    return at;
  }
  // Below 0: place a comes before place b; 0: they are the same.
  int Compare(int64_t a, int64_t b) const {
    for (int i = 0; i < rank_; ++i)
      if (At(a, i) != At(b, i)) return At(a, i) < At(b, i) ? -1 : 1;
    return 0;
  }
  // The first place that is not behind the one before it; nothing where they all are. same: being the same is no offence.
  std::optional<int64_t> FirstOutOfOrder(bool same) const {
    if (rank_ == 0 && same) return std::nullopt;  // places of no axes are all the same, and may be more than one can walk along
    for (int64_t k = 1; k < count_; ++k)
      if (Compare(k - 1, k) >= (same ? 1 : 0)) return k;
    return std::nullopt;
  }
  // Place k as messages show it.
  std::string Text(int64_t k) const {
    std::string numbers;
    for (int i = 0; i < rank_; ++i) numbers += (i ? ", " : "") + std::to_string(At(k, i));
    return std::string(name_) + "[" + std::to_string(k) + "] = [" + numbers + "]";
  }

 private:
  int64_t At(int64_t k, int i) const { return IndexAt(indices_, uint64_t(k * rank_ + i)); }

  const tw_view* indices_;
  const char* name_;
  int rank_;
  int64_t count_;
  bool numbered_ = true;
  Ints strides_;
};

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_SPARSE_PLACES_H_
