// Bincount: how often each number below `size` occurs, or the sum of the weights that stand where it does, added up in order: in double for
// floating-point weights. Larger numbers count for nothing, negative ones are refused.
#include <vector>

#include "kernels/common/rows.h"
#include "kernels/common/types.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

template <class T>
void Bincount(tw::Frame, tw::In<int32_t> arr, tw::In<int32_t> size, tw::In<T> weights, tw::Out<T> bins) {
  const int64_t n = size[0];
  if (n < 0) Invalid("size is " + std::to_string(n) + "; it must not be negative");
  if (weights.size() != 0 && weights.size() != arr.size())
    Invalid("weights of shape " + DimsText(weights.v) + " are neither empty nor one for each of arr, " + DimsText(arr.v));
  for (uint64_t i = 0; i < arr.size(); ++i)
    if (arr[i] < 0) Invalid("arr" + PositionText(arr.v, i) + " = " + std::to_string(arr[i]) + " is negative");
  Allocate(bins, &n, 1);
  using Sum = std::conditional_t<std::is_integral_v<T>, T, double>;
  std::vector<Sum> sums(size_t(n), Sum(0));
  for (uint64_t i = 0; i < arr.size(); ++i) {
    if (arr[i] >= n) continue;
    Sum& sum = sums[size_t(arr[i])];
    sum = Plus(sum, weights.size() ? Sum(weights[i]) : Sum(1));
  }
  for (int64_t i = 0; i < n; ++i) bins[uint64_t(i)] = T(sums[size_t(i)]);
}

}  // namespace

void register_bincount(tw::Plugin& p) {
  p.kernel<Bincount<int32_t>, Bincount<int64_t>, Bincount<float>, Bincount<double>>("Bincount @CPU");
}

}  // namespace thalweg::cpu
