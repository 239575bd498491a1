// ApproximateEqual: |x - y| < tolerance. The difference of integers is exact. Other differences are
// computed in their own type (half and bfloat16: in float). NaN and the difference of equal
// infinities are near nothing.
#include <cmath>

#include "kernels/common/element.h"
#include "kernels/common/kernel.h"
#include "kernels/common/parallel.h"
#include "kernels/common/types.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

using NearLoop = void (*)(const char* x, const char* y, double tolerance, bool* z, int64_t n);

template <class T>
double Distance(T x, T y) {
  if constexpr (std::is_integral_v<T>)
    return double(x < y ? uint64_t(y) - uint64_t(x) : uint64_t(x) - uint64_t(y));
  else
    return double(std::abs(Wide<T>(x) - Wide<T>(y)));
}

template <class T>
void Near(const char* x, const char* y, double tolerance, bool* z, int64_t n) {
  auto *a = reinterpret_cast<const T*>(x), *b = reinterpret_cast<const T*>(y);
  if constexpr (std::is_same_v<T, float>) {
    // `limit` is the smallest float not below the tolerance: no distance lies between the two.
    const float near = float(tolerance), limit = double(near) < tolerance ? std::nextafter(near, HUGE_VALF) : near;
    for (int64_t i = 0; i < n; ++i) z[i] = std::fabs(a[i] - b[i]) < limit;
  } else {
    for (int64_t i = 0; i < n; ++i) z[i] = Distance(a[i], b[i]) < tolerance;
  }
}

struct NearKernel {
  NearLoop loop;
  int64_t bytes;
};
template <class T>
constexpr NearKernel kNear{Near<T>, sizeof(T)};

class ApproximateEqual {
 public:
  ApproximateEqual(const tw::Node& n, const NearKernel& k) : kernel_(k), tolerance_(n.f("tolerance")) {}
  void operator()(tw::Frame f, tw::In<tw::Any> x, tw::In<tw::Any> y, tw::Out<bool> z) const {
    if (!SameDims(x.v, y.v))
      throw tw::Error{TW_INTERNAL, "x is " + DimsText(x.v) + " and y is " + DimsText(y.v) + "; their shapes must be equal"};
    ParallelFor(f.f, int64_t(z.size()), 2, [&](int64_t begin, int64_t end) {
      kernel_.loop(Bytes(x.v) + begin * kernel_.bytes, Bytes(y.v) + begin * kernel_.bytes, tolerance_, z.data() + begin, end - begin);
    });
  }

 private:
  const NearKernel& kernel_;
  double tolerance_;
};

template <class... T>
void AddTypes(tw::Plugin& p) {
  auto spec = [](const std::string& type) { return "ApproximateEqual(" + type + ", " + type + " -> bool) @CPU"; };
  (AddKernelClass<ApproximateEqual>(p, spec(tw::dtype<T>), kNear<T>), ...);
}

}  // namespace

void register_approximate_equal(tw::Plugin& p) {
  AddTypes<float, double, half, bfloat16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t, complex64, complex128>(
      p);
}

}  // namespace thalweg::cpu
