// Steps of optimizers over runs of elements, built once per instruction set in update_isa.cc and
// reached through a table. The per-set source includes this header, so it holds plain declarations
// only. The value of an element does not depend on where a caller cuts the run.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_UPDATE_H_
#define THALWEG_PLUGINS_CPU_KERNELS_UPDATE_H_

#include <stdint.h>

#include "kernels/common/isa.h"

namespace thalweg::cpu {

// One step over n elements. v: the variable and the optimizer's slots; k: the factors. Each comment
// below gives the order of both.
template <class T>
using UpdateLoop = void (*)(T* const* v, const T* grad, const T* k, int64_t n);

template <class T>
struct UpdateLoops {
  // var; alpha.   var -= alpha grad.
  UpdateLoop<T> gradient_descent;
  // var, accum; lr, momentum.   accum = momentum accum + grad; var -= lr accum, or lr (grad + momentum accum).
  UpdateLoop<T> momentum, momentum_nesterov;
  // The same with accum = momentum accum - lr grad; var += accum, or momentum accum - lr grad.
  UpdateLoop<T> keras_momentum, keras_momentum_nesterov;
  // var, m, v; alpha (the learning rate with the bias corrections in it), beta1, beta2, epsilon.
  // m += (1 - beta1) (grad - m); v += (1 - beta2) (grad^2 - v); var -= alpha m' / (sqrt(v) + epsilon), m' = m, or beta1 m + (1 - beta1)
  // grad.
  UpdateLoop<T> adam, adam_nesterov;
  // var, m, v, vhat.   As adam, with vhat = max(vhat, v), and the root of vhat in the divisor.
  UpdateLoop<T> amsgrad;
  // As adam, with v = max(beta2 v, |grad|); var -= alpha m / (v + epsilon).
  UpdateLoop<T> ada_max;
  // var, accum; lr, epsilon.   accum += grad^2 (not for adagrad_kept); var -= lr grad /
  // (sqrt(accum) + epsilon).
  UpdateLoop<T> adagrad, adagrad_kept;
  // var, accum, accum_update; lr, rho, epsilon.   accum = rho accum + (1 - rho) grad^2;
  // update = grad sqrt(accum_update + epsilon) / sqrt(accum + epsilon); var -= lr update;
  // accum_update = rho accum_update + (1 - rho) update^2.
  UpdateLoop<T> adadelta;
  // var, ms, mom; lr, rho, momentum, epsilon.   ms += (1 - rho) (grad^2 - ms); mom = momentum mom + lr grad / sqrt(ms + epsilon); var -=
  // mom.
  UpdateLoop<T> rmsprop;
  // var, mg, ms, mom; the factors of rmsprop.   As rmsprop, with mg += (1 - rho) (grad - mg), and
  // ms - mg^2 instead of ms under the root.
  UpdateLoop<T> centered_rmsprop;
  // var, accum, linear; lr, l1, l2, l2_shrinkage, lr_power.   With p = -lr_power, new = accum + grad^2:
  // linear += grad + 2 l2_shrinkage var - (new^p - accum^p) / lr var; accum = new;
  // var = (sign(linear) l1 - linear) / (new^p / lr + 2 l2) where |linear| > l1, else 0.
  UpdateLoop<T> ftrl;
  // The same, with `linear` stored times lr.
  UpdateLoop<T> ftrl_scaled;
};

struct UpdateTable {
  UpdateLoops<float> f32;
  UpdateLoops<double> f64;
};

TW_CPU_DECLARE_ISA(UpdateTable, Updates)

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_UPDATE_H_
