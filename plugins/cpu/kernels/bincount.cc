// Bincount: how often each number below `size` occurs, or the sum of the weights at its positions.
// Weights are added in order; floating-point weights are added in double. Larger numbers are
// ignored, negative ones are an error.
#include <algorithm>
#include <vector>

#include "kernels/common/rows.h"
#include "kernels/common/types.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

// The number of float bins that are summed at a time, in double. More bins need another pass over
// the numbers.
constexpr int64_t kBlock = int64_t{1} << 24;

// sums[i - first] = the sum for bin i of [first, end).
template <class T, class Sum>
void Add(tw::In<int32_t> arr, tw::In<T> weights, int64_t first, int64_t end, Sum* sums) {
  std::fill_n(sums, end - first, Sum(0));
  for (uint64_t i = 0; i < arr.size(); ++i) {
    if (arr[i] < first || arr[i] >= end) continue;
    Sum& sum = sums[arr[i] - first];
    sum = Plus(sum, weights.size() ? Sum(weights[i]) : Sum(1));
  }
}

template <class T>
void Bincount(tw::Frame, tw::In<int32_t> arr, tw::In<int32_t> size, tw::In<T> weights, tw::Out<T> bins) {
  const int64_t n = size[0];
  if (n < 0) throw tw::Error{TW_INTERNAL, "size is " + std::to_string(n) + "; it must not be negative"};
  if (weights.size() != 0 && weights.size() != arr.size())
    throw tw::Error{TW_INTERNAL,
                    "weights of shape " + DimsText(weights.v) + " are neither empty nor one for each of arr, " + DimsText(arr.v)};
  for (uint64_t i = 0; i < arr.size(); ++i)
    if (arr[i] < 0) Invalid("arr" + PositionText(arr.v, i) + " = " + std::to_string(arr[i]) + " is negative");
  Allocate(bins, &n, 1);
  if constexpr (std::is_same_v<T, float>) {
    std::vector<double> sums(size_t(std::min(n, kBlock)));
    for (int64_t first = 0; first < n; first += kBlock) {
      const int64_t end = std::min(first + kBlock, n);
      Add(arr, weights, first, end, sums.data());
      for (int64_t i = first; i < end; ++i) bins[uint64_t(i)] = T(sums[size_t(i - first)]);
    }
  } else {
    Add(arr, weights, 0, n, bins.data());
  }
}

}  // namespace

void register_bincount(tw::Plugin& p) {
  p.kernel<Bincount<int32_t>, Bincount<int64_t>, Bincount<float>, Bincount<double>>("Bincount @CPU");
}

}  // namespace thalweg::cpu
