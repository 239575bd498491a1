// The positions (places) of the stored elements of a sparse tensor: rows of an index matrix, one
// number for each axis.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_SPARSE_PLACES_H_
#define THALWEG_PLUGINS_CPU_KERNELS_SPARSE_PLACES_H_

#include <memory>
#include <optional>
#include <string>

#include "kernels/common/element.h"

namespace thalweg::cpu {

// Throws INVALID_ARGUMENT for a negative size. name: the input that holds the sizes.
inline void WantSizes(const int64_t* sizes, int n, const char* name) {
  for (int i = 0; i < n; ++i)
    if (sizes[i] < 0)
      Invalid(std::string(name) + "[" + std::to_string(i) + "] = " + std::to_string(sizes[i]) + "; sizes must not be negative");
}

// Threads: reads only.
class SparsePlaces {
 public:
  // indices: [n, rank]; or [n] for one axis; or one place without axes. name: the input. Throws
  // INVALID_ARGUMENT for a place outside `dims`.
  SparsePlaces(const tw_view* indices, const char* name, const int64_t* dims, int rank) : indices_(indices), name_(name), rank_(rank) {
    count_ = indices->rank > 0 ? indices->dims[0] : 1;
    uint64_t size = 1;
    for (int i = 0; i < rank; ++i) numbered_ &= !__builtin_mul_overflow(size, uint64_t(dims[i]), &size) && size <= INT64_MAX;
    if (numbered_) strides_ = DenseStrides(dims, rank);
    if (rank > 0 && count_ > 0) Read(dims);
  }

  int64_t count() const { return count_; }
  // Returns true if one int64 number identifies a place (the dense size fits).
  bool numbered() const { return numbered_; }
  // Returns the offset of place k in a dense tensor. REQUIRES: numbered().
  int64_t operator()(int64_t k) const { return numbers_ ? numbers_[size_t(k)] : 0; }
  // Returns a negative number if place a comes before place b, 0 if they are equal.
  int Compare(int64_t a, int64_t b) const {
    if (numbers_) return (numbers_[size_t(a)] > numbers_[size_t(b)]) - (numbers_[size_t(a)] < numbers_[size_t(b)]);
    for (int i = 0; i < rank_; ++i)
      if (At(a, i) != At(b, i)) return At(a, i) < At(b, i) ? -1 : 1;
    return 0;
  }
  // Returns the first place that does not follow the one before it, or nothing if all do. same:
  // equal places are allowed.
  std::optional<int64_t> FirstOutOfOrder(bool same) const {
    if (rank_ == 0 && same) return std::nullopt;  // places without axes are all equal, and there may be too many to walk
    for (int64_t k = 1; k < count_; ++k)
      if (Compare(k - 1, k) >= (same ? 1 : 0)) return k;
    return std::nullopt;
  }
  // Returns place k as messages show it.
  std::string Text(int64_t k) const {
    std::string numbers;
    for (int i = 0; i < rank_; ++i) numbers += (i ? ", " : "") + std::to_string(At(k, i));
    return std::string(name_) + "[" + std::to_string(k) + "] = [" + numbers + "]";
  }

 private:
  // Checks that all places are inside, and numbers them.
  void Read(const int64_t* dims) {
    if (numbered_) numbers_.reset(new int64_t[size_t(count_)]);
    const auto read = [&](const auto* at) {
      if (numbered_ && rank_ == 2) {
        const uint64_t rows = uint64_t(dims[0]), columns = uint64_t(dims[1]);
        for (int64_t k = 0; k < count_; ++k, at += 2) {
          const uint64_t row = uint64_t(int64_t(at[0])), column = uint64_t(int64_t(at[1]));
          if (row >= rows || column >= columns) Outside(k, dims);
          numbers_[size_t(k)] = int64_t(row * columns + column);
        }
        return;
      }
      for (int64_t k = 0; k < count_; ++k, at += rank_) {
        int64_t number = 0;
        for (int i = 0; i < rank_; ++i) {
          if (at[i] < 0 || int64_t(at[i]) >= dims[i]) Outside(k, dims);
          if (numbered_) number += int64_t(at[i]) * strides_[i];
        }
        if (numbered_) numbers_[size_t(k)] = number;
      }
    };
    if (indices_->dtype == TW_INT32) return read(reinterpret_cast<const int32_t*>(Bytes(indices_)));
    if (indices_->dtype == TW_INT64) return read(reinterpret_cast<const int64_t*>(Bytes(indices_)));
    throw tw::Error{TW_UNIMPLEMENTED, "indices of type " + TypeText(indices_->dtype) + " are not supported; cast them to int64"};
  }
  [[noreturn]] void Outside(int64_t k, const int64_t* dims) const {
    Invalid(Text(k) + " is outside of the shape " + tw::text(dims, rank_));
  }
  int64_t At(int64_t k, int i) const { return IndexAt(indices_, uint64_t(k * rank_ + i)); }

  const tw_view* indices_;
  const char* name_;
  int rank_;
  int64_t count_;
  bool numbered_ = true;
  Ints strides_;
  std::unique_ptr<int64_t[]> numbers_;  // of all places, if they have numbers and axes
};

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_SPARSE_PLACES_H_
