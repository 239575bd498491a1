// EditDistance: the Levenshtein distance of sequences of elements of any type, which are the last
// axis of two sparse tensors.
#include <algorithm>
#include <cstring>
#include <limits>

#include "kernels/common/element.h"
#include "kernels/common/kernel.h"
#include "kernels/common/parallel.h"
#include "kernels/common/temp.h"
#include "kernels/common/types.h"
#include "kernels/register.h"
#include "kernels/sparse_places.h"

namespace thalweg::cpu {
namespace {

// Returns whether element i of a equals element j of b.
using SameElement = bool (*)(const tw_view* a, int64_t i, const tw_view* b, int64_t j);

template <class T>
bool SameValue(const tw_view* a, int64_t i, const tw_view* b, int64_t j) {
  return reinterpret_cast<const T*>(Bytes(a))[i] == reinterpret_cast<const T*>(Bytes(b))[j];
}
bool SameText(const tw_view* a, int64_t i, const tw_view* b, int64_t j) {
  const tw_string &x = StringAt(a, uint64_t(i)), &y = StringAt(b, uint64_t(j));
  return x.size == y.size && (x.size == 0 || std::memcmp(x.data, y.data, x.size) == 0);
}

struct DistanceType {
  const char* name;
  SameElement same;
};
constexpr DistanceType kDistanceTypes[] = {
    {"bool", SameValue<uint8_t>},          {"int8", SameValue<int8_t>},
    {"int16", SameValue<int16_t>},         {"int32", SameValue<int32_t>},
    {"int64", SameValue<int64_t>},         {"uint8", SameValue<uint8_t>},
    {"uint16", SameValue<uint16_t>},       {"uint32", SameValue<uint32_t>},
    {"uint64", SameValue<uint64_t>},       {"half", SameValue<half>},
    {"bfloat16", SameValue<bfloat16>},     {"float", SameValue<float>},
    {"double", SameValue<double>},         {"complex64", SameValue<complex64>},
    {"complex128", SameValue<complex128>}, {"string", SameText},
    {"qint8", SameValue<int8_t>},          {"qint16", SameValue<int16_t>},
    {"qint32", SameValue<int32_t>},        {"quint8", SameValue<uint8_t>},
    {"quint16", SameValue<uint16_t>},
};

// One of the two sparse tensors, and the sequence that comes next.
class Sequences {
 public:
  Sequences(const tw::In<int64_t>& indices, const tw::In<tw::Any>& values, const tw::In<int64_t>& shape, const char* indices_name,
            const char* shape_name)
      : indices_(indices), rank_(int64_t(shape.size())), count_(int64_t(values.v->count)) {
    if (indices.rank() != 2 || values.rank() != 1 || shape.rank() != 1 || indices.dim(0) != count_ || indices.dim(1) != rank_ || rank_ < 2)
      Invalid(std::string(indices_name) + " " + DimsText(indices.v) + ", values " + DimsText(values.v) + " and " + shape_name + " " +
              DimsText(shape.v) + " do not form a sparse tensor of at least two axes");
    WantSizes(shape.data(), int(rank_), shape_name);
    const SparsePlaces places(indices.v, indices_name, shape.data(), int(rank_));
    if (const auto at = places.FirstOutOfOrder(false))
      Invalid(places.Text(*at) + (places.Compare(*at - 1, *at) == 0 ? " stands there twice" : " comes after " + places.Text(*at - 1)) +
              "; put the elements in order with SparseReorder");
    Find();
  }
  bool done() const { return begin_ == count_; }
  int64_t begin() const { return begin_; }
  int64_t length() const { return end_ - begin_; }
  void Next() {
    begin_ = end_;
    Find();
  }
  // Compares the places of the two sequences: their indices without the last.
  int Compare(const Sequences& o) const {
    for (int64_t k = 0; k + 1 < rank_; ++k)
      if (At(begin_, k) != o.At(o.begin_, k)) return At(begin_, k) < o.At(o.begin_, k) ? -1 : 1;
    return 0;
  }
  // Returns the place in a dense tensor with these strides.
  int64_t Place(const Ints& strides) const {
    int64_t place = 0;
    for (int k = 0; k < strides.n; ++k) place += At(begin_, k) * strides[k];
    return place;
  }

 private:
  int64_t At(int64_t element, int64_t axis) const { return indices_.data()[element * rank_ + axis]; }
  void Find() {
    end_ = begin_;
    while (end_ < count_ &&
           std::equal(&indices_.data()[begin_ * rank_], &indices_.data()[begin_ * rank_ + rank_ - 1], &indices_.data()[end_ * rank_]))
      ++end_;
  }

  tw::In<int64_t> indices_;
  int64_t rank_, count_, begin_ = 0, end_ = 0;
};

class EditDistance {
 public:
  EditDistance(const tw::Node& n, const DistanceType& type) : normalize_(n.b("normalize")), same_(type.same) {}

  void operator()(tw::Frame f, tw::In<int64_t> hypothesis_indices, tw::In<tw::Any> hypothesis_values, tw::In<int64_t> hypothesis_shape,
                  tw::In<int64_t> truth_indices, tw::In<tw::Any> truth_values, tw::In<int64_t> truth_shape, tw::Out<float> output) const {
    Sequences guess(hypothesis_indices, hypothesis_values, hypothesis_shape, "hypothesis_indices", "hypothesis_shape");
    Sequences truth(truth_indices, truth_values, truth_shape, "truth_indices", "truth_shape");
    if (hypothesis_shape.size() != truth_shape.size())
      Invalid("hypothesis_shape " + DimsText(hypothesis_shape.v) + " and truth_shape " + DimsText(truth_shape.v) +
              " must have the same number of entries");
    Ints dims;
    for (uint64_t k = 0; k + 1 < truth_shape.size(); ++k) dims.push(std::max(hypothesis_shape[k], truth_shape[k]));
    Allocate(output, dims.at, dims.n);
    const Ints strides = DenseStrides(dims.at, dims.n);
    std::fill_n(output.data(), output.size(), 0.0F);
    while (!guess.done() || !truth.done()) {
      const int order = guess.done() ? 1 : truth.done() ? -1 : guess.Compare(truth);
      if (order < 0) {  // no truth: as many insertions as there are elements, of 0
        output.data()[guess.Place(strides)] = normalize_ ? std::numeric_limits<float>::infinity() : float(guess.length());
      } else if (order > 0) {  // no hypothesis
        output.data()[truth.Place(strides)] = normalize_ ? 1.0F : float(truth.length());
      } else {
        const double distance = double(Distance(f.f, truth_values.v, truth, hypothesis_values.v, guess));
        output.data()[truth.Place(strides)] = float(normalize_ ? distance / double(truth.length()) : distance);
      }
      if (order <= 0) guess.Next();
      if (order >= 0) truth.Next();
    }
  }

 private:
  // row[j]: the distance of the first i elements of a and the first j of b.
  int64_t Distance(const tw_frame* f, const tw_view* a, const Sequences& in_a, const tw_view* b, const Sequences& in_b) const {
    const int64_t n = in_a.length(), m = in_b.length();
    const TempArray<int64_t> row(f, size_t(m + 1));
    for (int64_t j = 0; j <= m; ++j) row[size_t(j)] = j;
    for (int64_t i = 0; i < n; ++i) {
      int64_t diagonal = row[0];
      row[0] = i + 1;
      for (int64_t j = 0; j < m; ++j) {
        const int64_t above = row[size_t(j + 1)], replaced = diagonal + (same_(a, in_a.begin() + i, b, in_b.begin() + j) ? 0 : 1);
        row[size_t(j + 1)] = std::min({replaced, above + 1, row[size_t(j)] + 1});
        diagonal = above;
      }
    }
    return row[size_t(m)];
  }

  const bool normalize_;
  const SameElement same_;
};

}  // namespace

void register_edit_distance(tw::Plugin& p) {
  for (const DistanceType& type : kDistanceTypes) {
    const std::string t = type.name;
    AddKernelClass<EditDistance>(p, "EditDistance(int64, " + t + ", int64, int64, " + t + ", int64 -> float) @CPU", type);
  }
}

}  // namespace thalweg::cpu
