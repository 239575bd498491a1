// The loops of optimizers, compiled once per instruction set: plain loops that the compiler vectorises.
#include <math.h>

#include "kernels/update.h"

namespace thalweg::cpu::THALWEG_ISA {
namespace {

inline float Sqrt(float x) { return sqrtf(x); }
inline double Sqrt(double x) { return sqrt(x); }
inline float Pow(float x, float y) { return powf(x, y); }
inline double Pow(double x, double y) { return pow(x, y); }
inline float Abs(float x) { return fabsf(x); }
inline double Abs(double x) { return fabs(x); }
inline float CopySign(float x, float sign) { return copysignf(x, sign); }
inline double CopySign(double x, double sign) { return copysign(x, sign); }

template <class T>
void GradientDescent(T* const* v, const T* grad, const T* k, int64_t n) {
  T* var = v[0];
  const T alpha = k[0];
  for (int64_t i = 0; i < n; ++i) var[i] -= alpha * grad[i];
}

template <class T, bool kNesterov>
void Momentum(T* const* v, const T* grad, const T* k, int64_t n) {
  T *var = v[0], *accum = v[1];
  const T lr = k[0], momentum = k[1];
  for (int64_t i = 0; i < n; ++i) {
    const T a = accum[i] * momentum + grad[i];
    accum[i] = a;
    var[i] -= kNesterov ? grad[i] * lr + a * momentum * lr : a * lr;
  }
}

template <class T, bool kNesterov>
void KerasMomentum(T* const* v, const T* grad, const T* k, int64_t n) {
  T *var = v[0], *accum = v[1];
  const T lr = k[0], momentum = k[1];
  for (int64_t i = 0; i < n; ++i) {
    const T a = accum[i] * momentum - grad[i] * lr;
    accum[i] = a;
    var[i] += kNesterov ? a * momentum - grad[i] * lr : a;
  }
}

template <class T, bool kNesterov>
void Adam(T* const* slots, const T* grad, const T* k, int64_t n) {
  T *var = slots[0], *m = slots[1], *v = slots[2];
  const T alpha = k[0], beta1 = k[1], rest1 = 1 - k[1], rest2 = 1 - k[2], epsilon = k[3];
  for (int64_t i = 0; i < n; ++i) {
    const T g = grad[i];
    const T mi = m[i] + (g - m[i]) * rest1;
    const T vi = v[i] + (g * g - v[i]) * rest2;
    m[i] = mi;
    v[i] = vi;
    const T step = kNesterov ? beta1 * mi + rest1 * g : mi;
    var[i] -= step * alpha / (Sqrt(vi) + epsilon);
  }
}

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

template <class T, bool kKept>
void Adagrad(T* const* v, const T* grad, const T* k, int64_t n) {
  T *var = v[0], *accum = v[1];
  const T lr = k[0], epsilon = k[1];
  for (int64_t i = 0; i < n; ++i) {
    const T a = kKept ? accum[i] : accum[i] + grad[i] * grad[i];
    accum[i] = a;
    var[i] -= grad[i] * lr / (Sqrt(a) + epsilon);
  }
}

template <class T>
void Adadelta(T* const* v, const T* grad, const T* k, int64_t n) {
  T *var = v[0], *accum = v[1], *accum_update = v[2];
  const T lr = k[0], rho = k[1], rest = 1 - k[1], epsilon = k[2];
  for (int64_t i = 0; i < n; ++i) {
    const T a = accum[i] * rho + grad[i] * grad[i] * rest;
    const T update = Sqrt(accum_update[i] + epsilon) / Sqrt(a + epsilon) * grad[i];
    accum[i] = a;
    var[i] -= update * lr;
    accum_update[i] = accum_update[i] * rho + update * update * rest;
  }
}

template <class T>
void RmsProp(T* const* v, const T* grad, const T* k, int64_t n) {
  T *var = v[0], *ms = v[1], *mom = v[2];
  const T lr = k[0], rest = 1 - k[1], momentum = k[2], epsilon = k[3];
  for (int64_t i = 0; i < n; ++i) {
    const T s = ms[i] + (grad[i] * grad[i] - ms[i]) * rest;
    const T step = mom[i] * momentum + grad[i] * lr / Sqrt(s + epsilon);
    ms[i] = s;
    mom[i] = step;
    var[i] -= step;
  }
}

template <class T>
void CenteredRmsProp(T* const* v, const T* grad, const T* k, int64_t n) {
  T *var = v[0], *mg = v[1], *ms = v[2], *mom = v[3];
  const T lr = k[0], rest = 1 - k[1], momentum = k[2], epsilon = k[3];
  for (int64_t i = 0; i < n; ++i) {
    const T s = ms[i] + (grad[i] * grad[i] - ms[i]) * rest;
    const T g = mg[i] + (grad[i] - mg[i]) * rest;
    const T step = mom[i] * momentum + grad[i] * lr / Sqrt(s - g * g + epsilon);
    ms[i] = s;
    mg[i] = g;
    mom[i] = step;
    var[i] -= step;
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
constexpr UpdateLoops<T> kLoops = {
    .gradient_descent = GradientDescent<T>,
    .momentum = Momentum<T, false>,
    .momentum_nesterov = Momentum<T, true>,
    .keras_momentum = KerasMomentum<T, false>,
    .keras_momentum_nesterov = KerasMomentum<T, true>,
    .adam = Adam<T, false>,
    .adam_nesterov = Adam<T, true>,
    .amsgrad = Amsgrad<T>,
    .ada_max = AdaMax<T>,
    .adagrad = Adagrad<T, false>,
    .adagrad_kept = Adagrad<T, true>,
    .adadelta = Adadelta<T>,
    .rmsprop = RmsProp<T>,
    .centered_rmsprop = CenteredRmsProp<T>,
    .ftrl = Ftrl<T, false>,
    .ftrl_scaled = Ftrl<T, true>,
};

}  // namespace

const UpdateTable& Updates() {
  static constexpr UpdateTable table = {.f32 = kLoops<float>, .f64 = kLoops<double>};
  return table;
}

}  // namespace thalweg::cpu::THALWEG_ISA
