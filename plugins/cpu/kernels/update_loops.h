// The loops of update.h that do not compare numbers: for real numbers, once per instruction set,
// and for complex ones. Everything is in an unnamed namespace on purpose: objects of different
// instruction sets include this and must not share a function. The including file defines Sqrt(T).
#ifndef THALWEG_PLUGINS_CPU_KERNELS_UPDATE_LOOPS_H_
#define THALWEG_PLUGINS_CPU_KERNELS_UPDATE_LOOPS_H_

#include "kernels/update.h"

namespace thalweg::cpu {
namespace {

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
  const T alpha = k[0], beta1 = k[1], rest1 = T(1) - k[1], rest2 = T(1) - k[2], epsilon = k[3];
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
  const T lr = k[0], rho = k[1], rest = T(1) - k[1], epsilon = k[2];
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
  const T lr = k[0], rest = T(1) - k[1], momentum = k[2], epsilon = k[3];
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
  const T lr = k[0], rest = T(1) - k[1], momentum = k[2], epsilon = k[3];
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

template <class T>
constexpr UpdateLoops<T> UnorderedLoops() {
  UpdateLoops<T> loops{};
  loops.gradient_descent = GradientDescent<T>;
  loops.momentum = Momentum<T, false>;
  loops.momentum_nesterov = Momentum<T, true>;
  loops.keras_momentum = KerasMomentum<T, false>;
  loops.keras_momentum_nesterov = KerasMomentum<T, true>;
  loops.adam = Adam<T, false>;
  loops.adam_nesterov = Adam<T, true>;
  loops.adagrad = Adagrad<T, false>;
  loops.adagrad_kept = Adagrad<T, true>;
  loops.adadelta = Adadelta<T>;
  loops.rmsprop = RmsProp<T>;
  loops.centered_rmsprop = CenteredRmsProp<T>;
  return loops;
}

}  // namespace
}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_UPDATE_LOOPS_H_
