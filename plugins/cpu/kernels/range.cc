// Range: start, start + delta, ... up to `limit`, exclusive.
#include <cmath>

#include "kernels/common/arithmetic.h"
#include "kernels/common/element.h"
#include "kernels/common/types.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

// Returns the number of elements. Integers are counted exactly, other types in double.
template <class T>
int64_t Count(T start, T limit, T delta) {
  if (delta == T(0)) throw tw::Error{TW_INTERNAL, "delta is 0; a range needs a step"};
  const bool up = delta > T(0);
  if (up ? start >= limit : start <= limit) return 0;
  if constexpr (std::is_integral_v<T>) {
    const uint64_t span = up ? uint64_t(limit) - uint64_t(start) : uint64_t(start) - uint64_t(limit);
    const uint64_t step = up ? uint64_t(delta) : uint64_t(0) - uint64_t(delta);
    return int64_t(span / step + (span % step != 0));
  } else {
    const double n = std::ceil(std::abs((double(limit) - double(start)) / double(delta)));
    if (!(n < 9e15)) Invalid("a range of more than 9e15 elements is too long");
    return int64_t(n);
  }
}

template <class T>
void Range(tw::In<T> start, tw::In<T> limit, tw::In<T> delta, tw::Out<T> output) {
  const int64_t dims[] = {Count(start[0], limit[0], delta[0])};
  Allocate(output, dims, 1);
  // Each element is a new product, so rounding errors do not add up.
  const Wide<T> first = Wide<T>(start[0]), step = Wide<T>(delta[0]);
  for (int64_t i = 0; i < dims[0]; ++i) output[uint64_t(i)] = T(Plus(first, Times(Wide<T>(i), step)));
}

}  // namespace

void register_range(tw::Plugin& p) {
  p.kernel<Range<float>, Range<double>, Range<half>, Range<bfloat16>, Range<int8_t>, Range<int16_t>, Range<int32_t>, Range<int64_t>,
           Range<uint16_t>, Range<uint32_t>, Range<uint64_t>>("Range @CPU");
}

}  // namespace thalweg::cpu
