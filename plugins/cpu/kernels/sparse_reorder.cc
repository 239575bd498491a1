// SparseReorder: sorts places, and their elements with them. Equal places keep their order.
#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "kernels/common/slices.h"
#include "kernels/common/temp.h"
#include "kernels/register.h"
#include "kernels/sparse_places.h"

namespace thalweg::cpu {
namespace {

// Returns the indices of the places in sorted order.
tw::TempVector<int64_t> Order(tw::Frame f, const SparsePlaces& places) {
  const int64_t n = places.count();
  tw::TempVector<int64_t> order(size_t(n), 0, f);
  if (places.numbered()) {
    tw::TempVector<std::pair<int64_t, int64_t>> numbers(f);
    numbers.reserve(size_t(n));
    for (int64_t k = 0; k < n; ++k) numbers.emplace_back(places(k), k);
    std::sort(numbers.begin(), numbers.end());
    std::transform(numbers.begin(), numbers.end(), order.begin(), [](const auto& number) { return number.second; });
  } else {
    const tw::Charge charge(f, uint64_t(n) * sizeof(int64_t));  // the memory of a stable sort
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return places.Compare(a, b) < 0; });
  }
  return order;
}

void SparseReorder(tw::Frame f, tw::In<int64_t> input_indices, tw::In<tw::Any> input_values, tw::In<int64_t> input_shape,
                   tw::Out<int64_t> output_indices, tw::Out<tw::Any> output_values) {
  if (input_indices.rank() != 2 || input_values.size() != uint64_t(input_indices.dim(0)) ||
      uint64_t(input_indices.dim(1)) != input_shape.size())
    throw tw::Error{TW_INTERNAL, "input_indices is " + DimsText(input_indices.v) + ", input_values " + DimsText(input_values.v) +
                                     ", input_shape " + DimsText(input_shape.v)};
  const Ints dims = ReadInts(input_shape.v, "input_shape");
  WantSizes(dims.at, dims.n, "input_shape");
  const SparsePlaces places(input_indices.v, "input_indices", dims.at, dims.n);
  const int64_t n = places.count();
  if (!places.FirstOutOfOrder(true)) {
    CopyRun(f.f, input_indices.v, 0, output_indices.v(), 0, int64_t(input_indices.size()));
    return CopyRun(f.f, input_values.v, 0, output_values.v(), 0, n);
  }
  const tw::TempVector<int64_t> order = Order(f, places);
  CopySlices(f.f, input_indices.v, output_indices.v(), n, dims.n, [&](int64_t k) { return order[size_t(k)] * dims.n; });
  CopySlices(f.f, input_values.v, output_values.v(), n, 1, [&](int64_t k) { return order[size_t(k)]; });
}

}  // namespace

void register_sparse_reorder(tw::Plugin& p) { p.kernel<SparseReorder>("SparseReorder @CPU"); }

}  // namespace thalweg::cpu
