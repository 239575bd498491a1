// Sum over axes that the host knows when the kernel starts.
#include "kernels/kernel.h"
#include "kernels/register.h"

namespace thalweg::fake {
namespace {

template <class T, class I>
class Sum : Kernel {
 public:
  using Kernel::Kernel;
  void operator()(tw::Frame frame, tw::In<T> input, tw::In<I> reduction_indices, tw::Out<T> output) const {
    std::vector<char> reduced(size_t(input.rank()), 0);
    for (uint64_t k = 0; k < reduction_indices.size(); ++k) {
      const int64_t axis = int64_t(reduction_indices[k]) + (reduction_indices[k] < 0 ? input.rank() : 0);
      if (axis < 0 || axis >= input.rank())
        throw tw::Error{TW_INVALID_ARGUMENT, "axis " + std::to_string(reduction_indices[k]) + " of rank " + std::to_string(input.rank())};
      reduced[size_t(axis)] = 1;
    }
    Launch(frame.f, {input.v, output.v()}, [reduced](std::vector<Array>& v) { Run(v[0], v[1], reduced); });
  }

 private:
  static void Run(const Array& x, const Array& y, const std::vector<char>& reduced) {
    const size_t rank = x.dims.size();
    Dims steps(rank, 0), at(rank, 0);
    int64_t step = 1;
    for (size_t axis = rank; axis-- > 0;) {
      if (reduced[axis]) continue;
      steps[axis] = step;
      step *= x.dims[axis];
    }
    std::vector<double> sums(y.count, 0);
    size_t to = 0;
    for (uint64_t k = 0; k < x.count; ++k) {
      sums[to] += double(x.as<T>()[k]);
      for (size_t axis = rank; axis-- > 0;) {
        to += size_t(steps[axis]);
        if (++at[axis] < x.dims[axis]) break;
        to -= size_t(steps[axis] * x.dims[axis]);
        at[axis] = 0;
      }
    }
    for (uint64_t k = 0; k < y.count; ++k) y.as<T>()[k] = T(sums[k]);
  }
};

}  // namespace

void register_sum(tw::Plugin& p) {
  p.kernel<Sum<float, int32_t>, Sum<float, int64_t>, Sum<double, int32_t>, Sum<double, int64_t>>(
      "Sum @FAKE; capture_safe; host reduction_indices");
}

}  // namespace thalweg::fake
