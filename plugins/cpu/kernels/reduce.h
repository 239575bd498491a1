// Reductions, each behind one set of loops, so that one driver (reduce.cc) serves every op and
// type. The float loops, which half and bfloat16 use too, are built per instruction set
// (reduce_isa.cc). Per-set objects include this header, so it holds plain declarations only.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_REDUCE_H_
#define THALWEG_PLUGINS_CPU_KERNELS_REDUCE_H_

#include <stdint.h>

#include "kernels/common/isa.h"
#include "kernels/elementwise.h"

namespace thalweg::cpu {

// The number of elements that one accumulator takes in, and of 16-bit numbers that are widened at a
// time. All code that reduces rows must use these sizes, or the bits of the results differ.
constexpr int64_t kRowBlock = 32768, kWidenedBlock = 1024;
constexpr int64_t kMostAccBytes = 64;  // the largest accumulator

// An accumulator has `acc_bytes` bytes; the functions work on runs of accumulators.
struct ReduceKernel {
  uint32_t x_bytes, y_bytes, acc_bytes;
  // Sets acc[j] to the result of no elements.
  void (*start)(void* acc, int64_t n);
  // Adds x[0] .. x[n - 1] to *acc.
  void (*take_row)(const void* x, int64_t n, void* acc);
  // Adds x[i * stride + j] to acc[j] for each i < rows, j < n.
  void (*take_rows)(const void* x, int64_t n, int64_t stride, int64_t rows, void* acc);
  // Adds to acc[j] the elements that from[j] has taken in.
  void (*merge)(const void* from, int64_t n, void* acc);
  // Sets y[j] to the result of acc[j], which took in `count` elements.
  void (*finish)(const void* acc, int64_t n, int64_t count, void* y);
  // Set if the tensors hold half or bfloat16; x and y above are then float.
  Load16 load;
  Store16 store;
};

struct ReduceKernels {
  ReduceKernel sum, mean, prod, max, min, norm, half_square_sum;  // half_square_sum is for L2Loss
};
struct Reductions {
  ReduceKernels of_float, of_half, of_bfloat16;
};
TW_CPU_DECLARE_ISA(Reductions, ReductionTable)

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_REDUCE_H_
