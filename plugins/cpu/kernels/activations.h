// Activation functions and their gradients over runs of floats, built once per instruction set in
// activations_isa.cc. The per-set source includes this header, so it holds plain declarations only.
// The value of an element does not depend on where a run is cut. y and dx may be any of the inputs.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_ACTIVATIONS_H_
#define THALWEG_PLUGINS_CPU_KERNELS_ACTIVATIONS_H_

#include <stdint.h>

#include "kernels/common/isa.h"

namespace thalweg::cpu {

// alpha: the slope of LeakyRelu below 0; the others ignore it.
using ActivationLoop = void (*)(const float* x, float* y, int64_t n, float alpha);
// x: the forward input; for Elu and Selu it is the forward result.
using ActivationGradLoop = void (*)(const float* dy, const float* x, float* dx, int64_t n, float alpha);

struct ActivationTable {
  ActivationLoop leaky_relu, elu, selu, softplus, softsign;
  ActivationGradLoop leaky_relu_grad, elu_grad, selu_grad, softplus_grad, softsign_grad;
};
TW_CPU_DECLARE_ISA(ActivationTable, Activations)

// From Klambauer and others, "Self-normalizing neural networks", 2017: the scale, and the scale
// times alpha.
inline constexpr double kSeluScale = 1.0507009873554804934193349852946;
inline constexpr double kSeluScaleAlpha = 1.7580993408473768599402175208123;

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_ACTIVATIONS_H_
