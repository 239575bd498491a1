// Activation loops, compiled once per instruction set. Exponentials and logarithms come from the
// element-wise table of the same set, in runs that stay in the first-level cache. log(1 + x) is
// computed from them without cancellation (W. Kahan's method: the rounding error of 1 + x is the
// same in numerator and denominator).
#include <math.h>

#include "kernels/activations.h"
#include "kernels/elementwise.h"

namespace thalweg::cpu::THALWEG_ISA {
namespace {

constexpr int64_t kRun = 256;

// Calls part(first, count) for runs of at most kRun elements.
template <class F>
inline void ForRuns(int64_t n, F&& part) {
  for (int64_t i = 0; i < n; i += kRun) part(i, n - i < kRun ? n - i : kRun);
}

void LeakyRelu(const float* x, float* y, int64_t n, float alpha) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] > 0 ? x[i] : x[i] * alpha;
}
void LeakyReluGrad(const float* dy, const float* x, float* dx, int64_t n, float alpha) {
  for (int64_t i = 0; i < n; ++i) dx[i] = x[i] > 0 ? dy[i] : dy[i] * alpha;
}

// Computes above * x, or below * (exp(x) - 1) where x < 0.
void ScaledElu(const float* x, float* y, int64_t n, float above, float below) {
  const UnaryKernels& math = ElementwiseTable().unary_float;
  alignas(64) float e[kRun];
  ForRuns(n, [&](int64_t first, int64_t count) {
    const float* from = x + first;
    float* to = y + first;
    math.expm1.loop(from, e, count);
    for (int64_t i = 0; i < count; ++i) to[i] = from[i] < 0 ? below * e[i] : above * from[i];
  });
}
void Elu(const float* x, float* y, int64_t n, float) { ScaledElu(x, y, n, 1, 1); }
void Selu(const float* x, float* y, int64_t n, float) { ScaledElu(x, y, n, float(kSeluScale), float(kSeluScaleAlpha)); }

void EluGrad(const float* dy, const float* y, float* dx, int64_t n, float) {
  for (int64_t i = 0; i < n; ++i) dx[i] = y[i] < 0 ? dy[i] * (y[i] + 1) : dy[i];
}
void SeluGrad(const float* dy, const float* y, float* dx, int64_t n, float) {
  for (int64_t i = 0; i < n; ++i) dx[i] = dy[i] * (y[i] < 0 ? y[i] + float(kSeluScaleAlpha) : float(kSeluScale));
}

// Computes max(x, 0) + log(1 + exp(-|x|)).
void Softplus(const float* x, float* y, int64_t n, float) {
  const UnaryKernels& math = ElementwiseTable().unary_float;
  alignas(64) float e[kRun], l[kRun];
  ForRuns(n, [&](int64_t first, int64_t count) {
    const float* from = x + first;
    float* to = y + first;
    for (int64_t i = 0; i < count; ++i) e[i] = -fabsf(from[i]);
    math.exp.loop(e, e, count);
    for (int64_t i = 0; i < count; ++i) l[i] = 1 + e[i];
    math.log.loop(l, l, count);
    for (int64_t i = 0; i < count; ++i) {
      const float sum = 1 + e[i], quotient = e[i] * l[i] / (sum - 1);
      to[i] = (from[i] < 0 ? 0.f : from[i]) + (sum == 1 ? e[i] : quotient);
    }
  });
}
void SoftplusGrad(const float* dy, const float* x, float* dx, int64_t n, float) {
  const UnaryKernels& math = ElementwiseTable().unary_float;
  alignas(64) float slope[kRun];
  ForRuns(n, [&](int64_t first, int64_t count) {
    math.sigmoid.loop(x + first, slope, count);
    for (int64_t i = 0; i < count; ++i) dx[first + i] = dy[first + i] * slope[i];
  });
}

void Softsign(const float* x, float* y, int64_t n, float) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] / (1 + fabsf(x[i]));
}
void SoftsignGrad(const float* dy, const float* x, float* dx, int64_t n, float) {
  for (int64_t i = 0; i < n; ++i) dx[i] = dy[i] / ((1 + fabsf(x[i])) * (1 + fabsf(x[i])));
}

}  // namespace

const ActivationTable& Activations() {
  static constexpr ActivationTable table = {
      .leaky_relu = LeakyRelu,
      .elu = Elu,
      .selu = Selu,
      .softplus = Softplus,
      .softsign = Softsign,
      .leaky_relu_grad = LeakyReluGrad,
      .elu_grad = EluGrad,
      .selu_grad = SeluGrad,
      .softplus_grad = SoftplusGrad,
      .softsign_grad = SoftsignGrad,
  };
  return table;
}

}  // namespace thalweg::cpu::THALWEG_ISA
