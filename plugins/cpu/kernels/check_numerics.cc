// CheckNumerics: passes a tensor on, or fails and names its first element that is NaN or infinite.
#include <atomic>
#include <cmath>
#include <limits>

#include "kernels/common/element.h"
#include "kernels/common/parallel.h"
#include "kernels/common/types.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

constexpr int64_t kBlock = 4096;

template <class T>
class CheckNumerics {
 public:
  explicit CheckNumerics(const tw::Node& n) : message_(n.s("message")) {}
  void operator()(tw::Frame f, tw::In<T> tensor, tw::Out<T>) const {
    const int64_t n = int64_t(tensor.size()), blocks = (n + kBlock - 1) / kBlock;
    std::atomic<int64_t> first{n};
    ParallelFor(f.f, blocks, kBlock, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        const int64_t at = FirstBad(tensor, b * kBlock, std::min(n, (b + 1) * kBlock));
        for (int64_t seen = first; at < seen && !first.compare_exchange_weak(seen, at);) {
        }
      }
    });
    if (first < n) {
      const uint64_t at = uint64_t(first.load());
      const double bad = double(tensor[at]);
      const char* what = bad != bad ? "NaN" : bad > 0 ? "infinity" : "-infinity";
      Invalid(message_ + ": the tensor of shape " + DimsText(tensor.v) + " holds " + what + " at " + PositionText(tensor.v, at) +
              ", the first element that is not finite");
    }
    tw::check(f.f->host->tensor->forward(f.f, 0, 0, nullptr, 0));
  }

 private:
  // Returns the first bad element of [begin, end), or the largest int64. A finite number times zero
  // is zero, so one sum decides whether a second pass is needed.
  static int64_t FirstBad(const tw::In<T>& x, int64_t begin, int64_t end) {
    const T* p = x.data();
    float bad = 0;
    for (int64_t i = begin; i < end; ++i) bad += float(Wide<T>(p[i]) * Wide<T>(0) != Wide<T>(0));
    for (int64_t i = begin; bad > 0 && i < end; ++i)
      if (!std::isfinite(double(p[i]))) return i;
    return std::numeric_limits<int64_t>::max();
  }

  std::string message_;
};

}  // namespace

void register_check_numerics(tw::Plugin& p) {
  p.kernel<CheckNumerics<float>, CheckNumerics<double>, CheckNumerics<half>, CheckNumerics<bfloat16>>(
      "CheckNumerics @CPU; view output=tensor");
}

}  // namespace thalweg::cpu
