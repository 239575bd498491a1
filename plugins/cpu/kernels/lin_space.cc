// LinSpace: numbers at equal distances, computed in double and rounded once.
#include "kernels/common/element.h"
#include "kernels/common/parallel.h"
#include "kernels/common/types.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

template <class T>
void LinSpace(tw::Frame f, tw::In<T> start, tw::In<T> stop, tw::In<tw::Any> num, tw::Out<T> output) {
  const int64_t n = IndexAt(num.v, 0), dims[] = {n};
  if (n < 1) throw tw::Error{TW_INTERNAL, "num is " + std::to_string(n) + "; there must be at least one number"};
  Allocate(output, dims, 1);
  const double first = double(start[0]), step = n > 1 ? (double(stop[0]) - first) / double(n - 1) : 0;
  ParallelFor(f.f, n, 4, [&](int64_t begin, int64_t end) {
    constexpr int64_t kRun = 1 << 20;  // counted in 32 bits, which the vectoriser can convert
    for (int64_t i = begin; i < end; i += kRun)
      for (int32_t j = 0, run = int32_t(std::min(kRun, end - i)); j < run; ++j)
        output[uint64_t(i + j)] = T(first + step * (double(i) + double(j)));
  });
  output[0] = start[0];  // also if the step is NaN or infinite
  if (n > 1) output[uint64_t(n - 1)] = stop[0];
}

}  // namespace

void register_lin_space(tw::Plugin& p) { p.kernel<LinSpace<float>, LinSpace<double>, LinSpace<half>, LinSpace<bfloat16>>("LinSpace @CPU"); }

}  // namespace thalweg::cpu
