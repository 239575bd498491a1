// ClipByValue: max(min(t, high), low), so `low` wins if the bounds cross. NaN stays NaN. A bound
// that is NaN has no effect. Complex numbers are clipped part by part.
#include "kernels/common/element.h"
#include "kernels/common/kernel.h"
#include "kernels/common/parallel.h"
#include "kernels/common/types.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

struct ClipKernel {
  // A step is 1, or 0 for a bound that all elements share. y may be any of the inputs.
  void (*clip)(const char* t, const char* low, int64_t low_step, const char* high, int64_t high_step, char* y, int64_t n);
  int64_t bytes;
};

template <class T>
T Between(T x, T low, T high) {
  if constexpr (kIsComplex<T>) {
    return {Between(x.real(), low.real(), high.real()), Between(x.imag(), low.imag(), high.imag())};
  } else {
    const T bounded = high < x ? high : x;
    return bounded < low ? low : bounded;
  }
}

template <class T>
void Clip(const char* t, const char* low, int64_t low_step, const char* high, int64_t high_step, char* y, int64_t n) {
  auto *from = reinterpret_cast<const T*>(t), *least = reinterpret_cast<const T*>(low), *most = reinterpret_cast<const T*>(high);
  auto* to = reinterpret_cast<T*>(y);
  if (low_step || high_step) {
    for (int64_t i = 0; i < n; ++i) to[i] = Between(from[i], least[i * low_step], most[i * high_step]);
  } else {
    const T lo = *least, hi = *most;
    for (int64_t i = 0; i < n; ++i) to[i] = Between(from[i], lo, hi);
  }
}

template <class T>
constexpr ClipKernel kClip{Clip<T>, sizeof(T)};

void RunClip(const tw_frame* f, const ClipKernel& k) {
  const tw_view *t = f->in[0], *low = f->in[1], *high = f->in[2], *y = f->out[0];
  for (const tw_view* bound : {low, high}) {
    if (bound->rank > 0 && !SameDims(bound, t))
      Invalid("a bound is " + DimsText(bound) + "; it must be a scalar or have the shape of t, " + DimsText(t));
  }
  const int64_t low_step = low->rank > 0, high_step = high->rank > 0;
  ParallelFor(f, int64_t(t->count), 2, [&](int64_t begin, int64_t end) {
    const int64_t at = begin * k.bytes;
    k.clip(Bytes(t) + at, Bytes(low) + at * low_step, low_step, Bytes(high) + at * high_step, high_step, Bytes(y) + at, end - begin);
  });
}

template <class... T>
void AddTypes(tw::Plugin& p) {
  auto spec = [](const std::string& t) { return "ClipByValue(" + t + ", " + t + ", " + t + " -> " + t + ") @CPU; inplace output=t"; };
  (AddKernel<RunClip>(p, spec(tw::dtype<T>), kClip<T>), ...);
}

}  // namespace

void register_clip_by_value(tw::Plugin& p) {
  AddTypes<float, double, half, bfloat16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t, complex64, complex128>(
      p);
}

}  // namespace thalweg::cpu
