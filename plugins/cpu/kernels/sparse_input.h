// Sparse tensors among the inputs of kernels: a matrix of places, whose rows are the positions of the
// stored elements, a vector of values and a vector of sizes. Threads: reads only.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_SPARSE_INPUT_H_
#define THALWEG_PLUGINS_CPU_KERNELS_SPARSE_INPUT_H_

#include <algorithm>
#include <string>
#include <utility>

#include "kernels/common/element.h"
#include "kernels/common/temp.h"

namespace thalweg::cpu {

// The rows of a matrix of places.
struct PlaceRows {
  const int64_t* data;
  int64_t count;
  int rank;
  const int64_t* operator[](int64_t k) const { return data + k * rank; }
};

// Returns a negative number if place a comes before place b, 0 if they are equal.
inline int ComparePlaces(const int64_t* a, const int64_t* b, int rank) {
  for (int i = 0; i < rank; ++i)
    if (a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
  return 0;
}

// Returns "name[3] = [0, 1]".
inline std::string PlaceText(const std::string& name, int64_t k, const int64_t* place, int rank) {
  std::string numbers;
  for (int i = 0; i < rank; ++i) numbers += (i ? ", " : "") + std::to_string(place[i]);
  return name + "[" + std::to_string(k) + "] = [" + numbers + "]";
}

// Returns the rows of an index matrix whose entries are not checked.
inline PlaceRows UncheckedPlaces(const tw::In<int64_t>& indices, const std::string& name) {
  if (indices.rank() != 2) Invalid(name + " " + DimsText(indices.v) + " must be a matrix");
  if (indices.dim(1) > kMaxRank)
    Invalid(name + " has " + std::to_string(indices.dim(1)) + " columns, one for each axis; there are " + std::to_string(kMaxRank) +
            " axes at most");
  return {indices.data(), indices.dim(0), int(indices.dim(1))};
}

// The names of the parts of a sparse tensor, for messages.
struct SparseNames {
  std::string indices, values, shape;
};

class SparseInput {
 public:
  // values: NULL if the op has none. Throws INVALID_ARGUMENT for parts that do not fit each other, a
  // negative size, and a place outside of the sizes.
  SparseInput(const tw::In<int64_t>& indices, const tw_view* values, const tw::In<int64_t>& shape, SparseNames names)
      : names_(std::move(names)), places_(UncheckedPlaces(indices, names_.indices)) {
    if (shape.rank() != 1 || shape.dim(0) != places_.rank)
      Invalid(names_.shape + " " + DimsText(shape.v) + " must have a size for each of the " + std::to_string(places_.rank) +
              " columns of " + names_.indices);
    if (values && (values->rank != 1 || values->dims[0] != places_.count))
      Invalid(names_.values + " " + DimsText(values) + " must be a vector of " + std::to_string(places_.count) + ", the number of places");
    for (int i = 0; i < places_.rank; ++i) {
      sizes_.push(shape[uint64_t(i)]);
      if (sizes_[i] < 0)
        Invalid(names_.shape + "[" + std::to_string(i) + "] is " + std::to_string(sizes_[i]) + "; sizes must not be negative");
    }
    const int64_t* at = places_.data;
    for (int64_t k = 0; places_.rank > 0 && k < places_.count; ++k)
      for (int i = 0; i < places_.rank; ++i, ++at)
        if (uint64_t(*at) >= uint64_t(sizes_[i])) Invalid(Text(k) + " is outside of " + names_.shape + " " + SizesText());
  }

  int64_t count() const { return places_.count; }
  int rank() const { return places_.rank; }
  const PlaceRows& places() const { return places_; }
  const int64_t* place(int64_t k) const { return places_[k]; }
  int64_t size(int axis) const { return sizes_[axis]; }
  const int64_t* sizes() const { return sizes_.at; }
  std::string SizesText() const { return tw::text(sizes_.at, sizes_.n); }
  std::string Text(int64_t k) const { return PlaceText(names_.indices, k, place(k), rank()); }
  const SparseNames& names() const { return names_; }

 private:
  SparseNames names_;
  PlaceRows places_;
  Ints sizes_;
};

// Walks over the places of two sparse tensors as the merge of two sorted lists: step(i, j) gets the
// numbers of the elements at the next place, and -1 for a tensor without one there.
template <class Step>
void MergePlaces(const PlaceRows& a, const PlaceRows& b, Step&& step) {
  int64_t i = 0, j = 0;
  while (i < a.count || j < b.count) {
    const int order = i == a.count ? 1 : j == b.count ? -1 : ComparePlaces(a[i], b[j], a.rank);
    step(order <= 0 ? i : -1, order >= 0 ? j : -1);
    i += order <= 0 ? 1 : 0;
    j += order >= 0 ? 1 : 0;
  }
}

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_SPARSE_INPUT_H_
