// Cumsum, Cumprod: running sums and products along an axis, from either end, with or without the
// element itself. Half and bfloat16 are computed in float.
#include <algorithm>

#include "kernels/common/arithmetic.h"
#include "kernels/common/element.h"
#include "kernels/common/kernel.h"
#include "kernels/common/parallel.h"
#include "kernels/common/types.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

constexpr int64_t kColumns = 256;  // runs processed side by side if the axis is not the last one

// Rows of `columns` elements; consecutive rows are `step` elements apart.
struct Rows {
  int64_t n, step, columns;
};

struct RunKernel {
  void (*run)(const char* x, char* y, Rows rows, bool exclusive);
  uint32_t bytes;
};

// y may be x: an element is read before it is written.
template <class T, bool kProduct>
void Run(const char* x, char* y, Rows rows, bool exclusive) {
  Wide<T> total[kColumns];
  std::fill(total, total + kColumns, Wide<T>(kProduct));
  auto* from = reinterpret_cast<const T*>(x);
  auto* to = reinterpret_cast<T*>(y);
  for (int64_t k = 0; k < rows.n; ++k, from += rows.step, to += rows.step) {
    for (int64_t j = 0; j < rows.columns; ++j) {
      const Wide<T> before = total[j], next = Wide<T>(from[j]);
      total[j] = kProduct ? Times(before, next) : Plus(before, next);
      to[j] = T(exclusive ? before : total[j]);
    }
  }
}

template <class T, bool kProduct>
constexpr RunKernel kRun{Run<T, kProduct>, sizeof(T)};

class Cumulate {
 public:
  Cumulate(const tw::Node& n, const RunKernel& k) : kernel_(k), exclusive_(n.b("exclusive")), reverse_(n.b("reverse")) {}
  void operator()(tw::Frame f, tw::In<tw::Any> x, tw::In<tw::Any> axis_value, tw::Out<tw::Any> out) const {
    const int axis = Axis(IndexAt(axis_value.v, 0), x.rank());
    const int64_t n = x.dim(axis), inner = Product(x.dims(), axis + 1, x.rank()), outer = Product(x.dims(), 0, axis);
    if (x.size() == 0) return;
    const int64_t chunks = (inner + kColumns - 1) / kColumns, first = reverse_ ? (n - 1) * inner : 0;
    ParallelFor(f.f, outer * chunks, Cost(2, n, std::min(inner, kColumns)), [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) {
        const int64_t column = t % chunks * kColumns, at = (t / chunks * n * inner + column + first) * kernel_.bytes;
        kernel_.run(Bytes(x.v) + at, Bytes(out.v()) + at, {n, reverse_ ? -inner : inner, std::min(kColumns, inner - column)}, exclusive_);
      }
    });
  }

 private:
  const RunKernel& kernel_;
  bool exclusive_, reverse_;
};

template <class... T>
void AddTypes(tw::Plugin& p) {
  auto spec = [](const std::string& op, const std::string& type) { return op + "(" + type + ", _ -> " + type + ") @CPU; inplace out=x"; };
  (AddKernelClass<Cumulate>(p, spec("Cumsum", tw::dtype<T>), kRun<T, false>), ...);
  (AddKernelClass<Cumulate>(p, spec("Cumprod", tw::dtype<T>), kRun<T, true>), ...);
}

}  // namespace

void register_cumsum(tw::Plugin& p) {
  AddTypes<float, double, half, bfloat16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t, complex64, complex128>(
      p);
}

}  // namespace thalweg::cpu
