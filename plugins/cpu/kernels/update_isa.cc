// The loops of optimizers, compiled once per instruction set: plain loops that the compiler vectorises.
#include <math.h>

#include "kernels/update.h"

namespace thalweg::cpu {
namespace {

inline float Sqrt(float x) { return sqrtf(x); }
inline double Sqrt(double x) { return sqrt(x); }

}  // namespace
}  // namespace thalweg::cpu

#include "kernels/update_loops.h"

namespace thalweg::cpu::THALWEG_ISA {
namespace {

inline float Pow(float x, float y) { return powf(x, y); }
inline double Pow(double x, double y) { return pow(x, y); }
inline float Abs(float x) { return fabsf(x); }
inline double Abs(double x) { return fabs(x); }
inline float CopySign(float x, float sign) { return copysignf(x, sign); }
inline double CopySign(double x, double sign) { return copysign(x, sign); }

template <class T>
void Amsgrad(T* const* slots, const T* grad, const T* k, int64_t n) {
  T *var = slots[0], *m = slots[1], *v = slots[2], *vhat = slots[3];
  const T alpha = k[0], rest1 = 1 - k[1], rest2 = 1 - k[2], epsilon = k[3];
  for (int64_t i = 0; i < n; ++i) {
    const T g = grad[i];
    const T mi = m[i] + (g - m[i]) * rest1;
    const T vi = v[i] + (g * g - v[i]) * rest2;
    const T most = vhat[i] > vi ? vhat[i] : vi;
    m[i] = mi;
    v[i] = vi;
    vhat[i] = most;
    var[i] -= mi * alpha / (Sqrt(most) + epsilon);
  }
}

template <class T>
void AdaMax(T* const* slots, const T* grad, const T* k, int64_t n) {
  T *var = slots[0], *m = slots[1], *v = slots[2];
  const T alpha = k[0], rest1 = 1 - k[1], beta2 = k[2], epsilon = k[3];
  for (int64_t i = 0; i < n; ++i) {
    const T mi = m[i] + (grad[i] - m[i]) * rest1;
    const T old = beta2 * v[i], now = Abs(grad[i]);
    const T vi = old > now ? old : now;
    m[i] = mi;
    v[i] = vi;
    var[i] -= alpha * (mi / (vi + epsilon));
  }
}

template <class T, bool kScaled, bool kRoot>
void FtrlLoop(T* const* v, const T* grad, const T* k, int64_t n) {
  T *var = v[0], *accum = v[1], *linear = v[2];
  const T unit = kScaled ? T(1) : k[0], scale = kScaled ? k[0] : T(1);
  const T l1 = k[1] * scale, l2 = 2 * k[2] * scale, shrinkage = 2 * k[3], power = -k[4];
  for (int64_t i = 0; i < n; ++i) {
    const T now = accum[i] + grad[i] * grad[i];
    const T root = kRoot ? Sqrt(now) : Pow(now, power), was = kRoot ? Sqrt(accum[i]) : Pow(accum[i], power);
    const T l = linear[i] + ((grad[i] + shrinkage * var[i]) * scale - (root - was) / unit * var[i]);
    linear[i] = l;
    accum[i] = now;
    var[i] = Abs(l) <= l1 ? T(0) : (CopySign(l1, l) - l) / (root / unit + l2);  // NaN stays NaN
  }
}

template <class T, bool kScaled>
void Ftrl(T* const* v, const T* grad, const T* k, int64_t n) {
  if (k[4] == T(-0.5)) return FtrlLoop<T, kScaled, true>(v, grad, k, n);
  FtrlLoop<T, kScaled, false>(v, grad, k, n);
}

template <class T>
constexpr UpdateLoops<T> Loops() {
  UpdateLoops<T> loops = UnorderedLoops<T>();
  loops.amsgrad = Amsgrad<T>;
  loops.ada_max = AdaMax<T>;
  loops.ftrl = Ftrl<T, false>;
  loops.ftrl_scaled = Ftrl<T, true>;
  return loops;
}

}  // namespace

const UpdateTable& Updates() {
  static constexpr UpdateTable table = {.f32 = Loops<float>(), .f64 = Loops<double>()};
  return table;
}

}  // namespace thalweg::cpu::THALWEG_ISA
