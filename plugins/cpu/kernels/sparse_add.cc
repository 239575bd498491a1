// SparseAdd, its gradient, SparseSparseMaximum and SparseSparseMinimum. The places of both operands
// are merged as two sorted lists; each element of the result has an element of one operand or of both.
// Operands out of order are merged all the same, as TensorFlow does.
#include <cmath>
#include <cstring>
#include <utility>

#include "kernels/common/arithmetic.h"
#include "kernels/common/copy.h"
#include "kernels/common/types.h"
#include "kernels/register.h"
#include "kernels/sparse_input.h"

namespace thalweg::cpu {
namespace {

// The numbers of the elements of one place; -1: the operand has none there.
using SparsePair = std::pair<int64_t, int64_t>;
using SparsePairs = tw::TempVector<SparsePair>;

struct SparseOperands {
  SparseInput a, b;
  SparseOperands(tw::In<int64_t> a_indices, const tw_view* a_values, tw::In<int64_t> a_shape, tw::In<int64_t> b_indices,
                 const tw_view* b_values, tw::In<int64_t> b_shape)
      : a(a_indices, a_values, a_shape, {"a_indices", "a_values", "a_shape"}),
        b(b_indices, b_values, b_shape, {"b_indices", "b_values", "b_shape"}) {
    if (a.rank() != b.rank() || !std::equal(a.sizes(), a.sizes() + a.rank(), b.sizes()))
      Invalid("a_shape is " + a.SizesText() + " and b_shape is " + b.SizesText() +
              "; both must be equal, sparse tensors do not broadcast here");
  }
  SparsePairs Merged(tw::Frame f) const {
    SparsePairs pairs(f);
    pairs.reserve(size_t(std::max(a.count(), b.count())));
    MergePlaces(a.places(), b.places(), [&](int64_t i, int64_t j) { pairs.emplace_back(i, j); });
    return pairs;
  }
  // Allocates the places and the values of the result, and writes the places.
  void WritePlaces(const SparsePairs& pairs, tw::Out<int64_t> indices, tw::Out<tw::Any> values) const {
    const auto n = int64_t(pairs.size());
    const int64_t dims[] = {n, a.rank()};
    Allocate(indices, dims, 2);
    Allocate(values, &n, 1);
    int64_t* to = indices.data();
    for (const auto& [i, j] : pairs) to = std::copy_n(i >= 0 ? a.place(i) : b.place(j), a.rank(), to);
  }
};

// Returns the element of a scalar of real numbers: long double holds every value of these types.
long double RealScalar(const tw_view* v, const char* name) {
  if (v->count != 1) Invalid(std::string(name) + " " + DimsText(v) + " must be a scalar");
  const auto as = [&](auto type) { return static_cast<long double>(*reinterpret_cast<const decltype(type)*>(Bytes(v))); };
  const auto small = [&](auto type) { return static_cast<long double>(float(*reinterpret_cast<const decltype(type)*>(Bytes(v)))); };
  switch (v->dtype) {
    case TW_FLOAT: return as(float{});
    case TW_DOUBLE: return as(double{});
    case TW_HALF: return small(half{});
    case TW_BFLOAT16: return small(bfloat16{});
    case TW_INT8: return as(int8_t{});
    case TW_INT16: return as(int16_t{});
    case TW_INT32: return as(int32_t{});
    case TW_INT64: return as(int64_t{});
    case TW_UINT8: return as(uint8_t{});
    case TW_UINT16: return as(uint16_t{});
    case TW_UINT32: return as(uint32_t{});
    case TW_UINT64: return as(uint64_t{});
    default: throw tw::Error{TW_UNIMPLEMENTED, std::string(name) + " of type " + TypeText(v->dtype) + " is not supported"};
  }
}

template <class T>
long double MagnitudeOf(T x) {
  if constexpr (kIsComplex<T>)
    return std::abs(x);
  else if constexpr (kIsSmallFloat<T>)
    return std::fabs(float(x));
  else
    return std::fabs(static_cast<long double>(x));
}

template <class T>
void SparseAdd(tw::Frame f, tw::In<int64_t> a_indices, tw::In<T> a_values, tw::In<int64_t> a_shape, tw::In<int64_t> b_indices,
               tw::In<T> b_values, tw::In<int64_t> b_shape, tw::In<tw::Any> thresh, tw::Out<int64_t> sum_indices, tw::Out<T> sum_values,
               tw::Out<int64_t> sum_shape) {
  const SparseOperands in(a_indices, a_values.v, a_shape, b_indices, b_values.v, b_shape);
  const long double least = RealScalar(thresh.v, "thresh");
  SparsePairs pairs = in.Merged(f);
  const auto sum = [&](const SparsePair& pair) {
    const auto [i, j] = pair;
    return i < 0 ? b_values[uint64_t(j)] : j < 0 ? a_values[uint64_t(i)] : Plus(a_values[uint64_t(i)], b_values[uint64_t(j)]);
  };
  const auto below = [&](const SparsePair& pair) { return MagnitudeOf(sum(pair)) < least; };
  pairs.erase(std::remove_if(pairs.begin(), pairs.end(), below), pairs.end());
  in.WritePlaces(pairs, sum_indices, {sum_values.f, sum_values.o});
  for (size_t k = 0; k < pairs.size(); ++k) sum_values[k] = sum(pairs[k]);
  const int64_t rank = in.a.rank();
  Allocate(sum_shape, &rank, 1);
  std::copy_n(in.a.sizes(), rank, sum_shape.data());
}

// The elements of both operands get the gradient of their sum; those whose sum is below the
// threshold, and so not among the sums, get 0.
void SparseAddGrad(tw::Frame f, tw::In<tw::Any> grads, tw::In<int64_t> a_indices, tw::In<int64_t> b_indices, tw::In<int64_t> sum_indices,
                   tw::Out<tw::Any> a_grads, tw::Out<tw::Any> b_grads) {
  const PlaceRows a = UncheckedPlaces(a_indices, "a_indices"), b = UncheckedPlaces(b_indices, "b_indices"),
                  sums = UncheckedPlaces(sum_indices, "sum_indices");
  if (a.rank != sums.rank || b.rank != sums.rank)
    Invalid("a_indices " + DimsText(a_indices.v) + ", b_indices " + DimsText(b_indices.v) + " and sum_indices " + DimsText(sum_indices.v) +
            " must have equally many columns");
  if (grads.rank() != 1 || grads.dim(0) != sums.count)
    Invalid("backprop_val_grad " + DimsText(grads.v) + " must be a vector of " + std::to_string(sums.count) + ", the rows of sum_indices");
  Allocate(a_grads, &a.count, 1);
  Allocate(b_grads, &b.count, 1);
  FillZero(f.f, a_grads.v());
  FillZero(f.f, b_grads.v());
  int64_t k = 0;
  BySize(ElementBytes(grads.v->dtype), [&](auto element) {
    using E = decltype(element);
    const auto copy = [&](const tw::Out<tw::Any>& to, int64_t at) {
      if (at >= 0) std::memcpy(to.data() + at * int64_t(sizeof(E)), grads.data() + k * int64_t(sizeof(E)), sizeof(E));
    };
    MergePlaces(a, b, [&](int64_t i, int64_t j) {
      if (k == sums.count || ComparePlaces(sums[k], i >= 0 ? a[i] : b[j], sums.rank) != 0) return;
      copy(a_grads, i);
      copy(b_grads, j);
      ++k;
    });
  });
  if (k < sums.count)
    Invalid(PlaceText("sum_indices", k, sums[k], sums.rank) + " is the place of no element of either operand, or stands in another order");
}

// If one of the elements is NaN, so is the result.
template <bool kLarger, class T>
T Extreme(T x, T y) {
  if (x != x || (kLarger ? x > y : x < y)) return x;
  return y;
}

template <bool kLarger, class T>
void SparseExtreme(tw::Frame f, tw::In<int64_t> a_indices, tw::In<T> a_values, tw::In<int64_t> a_shape, tw::In<int64_t> b_indices,
                   tw::In<T> b_values, tw::In<int64_t> b_shape, tw::Out<int64_t> indices, tw::Out<T> values) {
  const SparseOperands in(a_indices, a_values.v, a_shape, b_indices, b_values.v, b_shape);
  const SparsePairs pairs = in.Merged(f);
  in.WritePlaces(pairs, indices, {values.f, values.o});
  for (size_t k = 0; k < pairs.size(); ++k) {
    const auto [i, j] = pairs[k];
    values[k] = Extreme<kLarger>(i < 0 ? T(0) : a_values[uint64_t(i)], j < 0 ? T(0) : b_values[uint64_t(j)]);
  }
}

template <bool kLarger, class... T>
void AddSparseExtreme(tw::Plugin& p, const char* spec) {
  p.kernel<SparseExtreme<kLarger, T>...>(spec);
}

}  // namespace

void register_sparse_add(tw::Plugin& p) {
  p.kernel<SparseAdd<float>, SparseAdd<double>, SparseAdd<half>, SparseAdd<bfloat16>, SparseAdd<int8_t>, SparseAdd<int16_t>,
           SparseAdd<int32_t>, SparseAdd<int64_t>, SparseAdd<uint8_t>, SparseAdd<uint16_t>, SparseAdd<uint32_t>, SparseAdd<uint64_t>,
           SparseAdd<complex64>, SparseAdd<complex128>>("SparseAdd @CPU");
  p.kernel<SparseAddGrad>("SparseAddGrad @CPU");
  AddSparseExtreme<true, float, double, half, bfloat16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>(
      p, "SparseSparseMaximum @CPU");
  AddSparseExtreme<false, float, double, half, bfloat16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>(
      p, "SparseSparseMinimum @CPU");
}

}  // namespace thalweg::cpu
