// Element-wise loops behind one signature per arity, so that one driver per arity serves every op
// and type. Float loops, which half and bfloat16 use too, are built per instruction set
// (elementwise_isa.cc). The other types are in unary.cc, binary.cc and compare.cc. Per-set objects
// include this header, so it holds plain declarations only.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_ELEMENTWISE_H_
#define THALWEG_PLUGINS_CPU_KERNELS_ELEMENTWISE_H_

#include <stdint.h>

#include "kernels/common/isa.h"

namespace thalweg::cpu {

// y[i] = f(x[i]) for i < n; y may be x. The value of an element depends only on that element of x,
// so pieces may be cut anywhere.
using UnaryLoop = void (*)(const void* x, void* y, int64_t n);

// z[i] = f(x[i * x_step], y[i * y_step]) for i < n. One step is 1, the other 0 or 1; z may be x or
// y if its step is 1. Returns n. If f has no value for some i, returns the first such i, and z must
// not be used.
using BinaryLoop = int64_t (*)(const void* x, int64_t x_step, const void* y, int64_t y_step, void* z, int64_t n);

using Load16 = void (*)(const uint16_t* x, float* y, int64_t n);
using Store16 = void (*)(const float* x, uint16_t* y, int64_t n);

// `load` and `store` are set if the tensors hold half or bfloat16 but the loop works on float.
// `store` alone is NULL if the result is bool. cost: units of ParallelFor per element.
struct UnaryKernel {
  UnaryLoop loop;
  uint32_t x_bytes, y_bytes, cost;
  Load16 load;
  Store16 store;
};
struct BinaryKernel {
  BinaryLoop loop;
  uint32_t xy_bytes, z_bytes, cost;
  Load16 load;
  Store16 store;
};

struct UnaryKernels {
  UnaryKernel abs, neg, sign, square, sqrt, rsqrt, reciprocal, exp, expm1, log, log1p, sin, cos, tanh, asin, acos, atan, atanh, sigmoid,
      erf, erfc, floor, ceil, round, tan, sinh, cosh, asinh, acosh, erfinv, ndtri;
  UnaryKernel is_nan, is_inf, is_finite, to_int32;
};
struct BinaryKernels {
  BinaryKernel add, sub, mul, div, div_no_nan, floor_div, floor_mod, pow, maximum, minimum, xlogy, xlog1py, atan2, squared_difference;
  BinaryKernel sqrt_grad, rsqrt_grad, reciprocal_grad, tanh_grad, sigmoid_grad;
  BinaryKernel equal, not_equal, less, less_equal, greater, greater_equal;
};

struct Elementwise {
  UnaryKernels unary_float, unary_half, unary_bfloat16;
  BinaryKernels binary_float, binary_half, binary_bfloat16;
};
TW_CPU_DECLARE_ISA(Elementwise, ElementwiseTable)

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_ELEMENTWISE_H_
