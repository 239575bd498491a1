// SparseDenseCwiseAdd, -Mul and -Div: one result for each stored element. SparseTensorDenseAdd: a copy
// of the dense tensor, to which the stored elements are added one after the other.
#include <limits>

#include "kernels/common/arithmetic.h"
#include "kernels/common/copy.h"
#include "kernels/common/types.h"
#include "kernels/register.h"
#include "kernels/sparse_input.h"

namespace thalweg::cpu {
namespace {

// Returns the offset in the dense tensor, which broadcasts, for each stored element.
tw::TempVector<int64_t> DenseOffsets(tw::Frame f, const SparseInput& in, const tw_view* dense) {
  const int skipped = in.rank() - dense->rank;
  bool fits = skipped >= 0;
  for (int i = 0; fits && i < dense->rank; ++i) fits = dense->dims[i] == 1 || dense->dims[i] == in.size(skipped + i);
  if (!fits)
    Invalid("'dense' " + DimsText(dense) + " does not broadcast to the sparse tensor's " + in.SizesText() +
            "; it may lack the first axes or have size 1, and the sparse tensor does not broadcast");
  Ints strides = DenseStrides(dense->dims, dense->rank);
  for (int i = 0; i < dense->rank; ++i)
    if (dense->dims[i] == 1) strides[i] = 0;
  tw::TempVector<int64_t> offsets(size_t(in.count()), 0, f);
  for (int64_t k = 0; k < in.count(); ++k)
    for (int i = 0; i < dense->rank; ++i) offsets[size_t(k)] += in.place(k)[skipped + i] * strides[i];
  return offsets;
}

[[noreturn]] void NoQuotient(const SparseInput& in, int64_t k, const std::string& x, const std::string& y) {
  Invalid("sp_values[" + std::to_string(k) + "] = " + x + " at " + in.Text(k) + " has no quotient by " + y);
}

template <char kOp, class T>
void SparseDenseCwise(tw::Frame f, tw::In<int64_t> indices, tw::In<T> values, tw::In<int64_t> shape, tw::In<T> dense, tw::Out<T> output) {
  const SparseInput in(indices, values.v, shape, {"sp_indices", "sp_values", "sp_shape"});
  const tw::TempVector<int64_t> offsets = DenseOffsets(f, in, dense.v);
  const int64_t n = in.count();
  Allocate(output, &n, 1);
  for (size_t k = 0; k < offsets.size(); ++k) {
    const auto x = Wide<T>(values[k]), y = Wide<T>(dense[uint64_t(offsets[k])]);
    if constexpr (kOp == '+') {
      output[k] = T(Plus(x, y));
    } else if constexpr (kOp == '*') {
      output[k] = T(Times(x, y));
    } else {
      if constexpr (std::is_integral_v<T>)
        if (y == 0 || (std::is_signed_v<T> && y == T(-1) && x == std::numeric_limits<T>::min()))
          NoQuotient(in, int64_t(k), std::to_string(x), std::to_string(y));
      output[k] = T(x / y);
    }
  }
}

// Calls body(offset in the dense tensor, number) for each stored element, after its place was
// checked.
template <class Index, class Body>
void EachOffset(const tw_view* indices, const Ints& sizes, Body&& body) {
  const auto* at = reinterpret_cast<const Index*>(Bytes(indices));
  for (int64_t k = 0; k < indices->dims[0]; ++k, at += sizes.n) {
    int64_t offset = 0;
    for (int i = 0; i < sizes.n; ++i) {
      const int64_t place = at[i];
      if (place < 0 || place >= sizes[i])
        Invalid("a_indices[" + std::to_string(k) + ", " + std::to_string(i) + "] is " + std::to_string(place) + "; it must be in [0, " +
                std::to_string(sizes[i]) + "), the size of axis " + std::to_string(i));
      offset = offset * sizes[i] + place;
    }
    body(offset, k);
  }
}

template <class T>
void SparseTensorDenseAdd(tw::Frame f, tw::In<tw::Any> indices, tw::In<T> values, tw::In<tw::Any> shape, tw::In<T> b, tw::Out<T> output) {
  const Ints sizes = ReadInts(shape.v, "a_shape");
  if (shape.rank() != 1 || b.rank() != sizes.n || !std::equal(sizes.at, sizes.at + sizes.n, b.dims()))
    Invalid("a_shape is " + tw::text(sizes.at, sizes.n) + " and b is " + DimsText(b.v) + "; both must be equal, nothing broadcasts here");
  if (indices.rank() != 2 || indices.dim(1) != sizes.n || values.rank() != 1 || values.dim(0) != indices.dim(0))
    Invalid("a_indices is " + DimsText(indices.v) + ", a_values " + DimsText(values.v) + " and a_shape " + DimsText(shape.v) +
            "; give a row and a value for each element, and a column and a size for each axis");
  Allocate(output, b.dims(), b.rank());
  CopyRun(f.f, b.v, 0, output.v(), 0, int64_t(b.size()));
  const auto add = [&](int64_t offset, int64_t k) { output[uint64_t(offset)] = Plus(output[uint64_t(offset)], values[uint64_t(k)]); };
  if (indices.v->dtype == TW_INT32) return EachOffset<int32_t>(indices.v, sizes, add);
  EachOffset<int64_t>(indices.v, sizes, add);
}

template <class... T>
void AddSparseDense(tw::Plugin& p) {
  p.kernel<SparseDenseCwise<'+', T>...>("SparseDenseCwiseAdd @CPU");
  p.kernel<SparseDenseCwise<'*', T>...>("SparseDenseCwiseMul @CPU");
  p.kernel<SparseDenseCwise<'/', T>...>("SparseDenseCwiseDiv @CPU");
  p.kernel<SparseTensorDenseAdd<T>...>("SparseTensorDenseAdd @CPU");
}

}  // namespace

void register_sparse_dense(tw::Plugin& p) {
  AddSparseDense<float, double, half, bfloat16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t, complex64,
                 complex128>(p);
}

}  // namespace thalweg::cpu
