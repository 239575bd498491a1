// Reductions behind one set of loops each, so that one driver (reduce.cc) serves every op and type. The float loops, which half and
// bfloat16 use too, are built per instruction set (reduce_isa.cc). Included by per-set objects: plain declarations only.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_REDUCE_H_
#define THALWEG_PLUGINS_CPU_KERNELS_REDUCE_H_

#include <stdint.h>

#include "kernels/common/isa.h"
#include "kernels/elementwise.h"

namespace thalweg::cpu {

// Whoever reduces rows must cut them alike, or the bits differ: the elements that one accumulator takes in, and the 16-bit numbers of them
// that are widened at a time.
constexpr int64_t kRowBlock = 32768, kWidenedBlock = 1024;
constexpr int64_t kMostAccBytes = 64;  // of an accumulator

// An accumulator has `acc_bytes`; the functions work on runs of them.
struct ReduceKernel {
  uint32_t x_bytes, y_bytes, acc_bytes;
  // acc[j] = what no elements give.
  void (*start)(void* acc, int64_t n);
  // *acc takes in x[0] .. x[n - 1].
  void (*take_row)(const void* x, int64_t n, void* acc);
  // acc[j] takes in x[i * stride + j] for each i < rows, j < n.
  void (*take_rows)(const void* x, int64_t n, int64_t stride, int64_t rows, void* acc);
  // acc[j] takes in what from[j] has taken in.
  void (*merge)(const void* from, int64_t n, void* acc);
  // y[j] is the result of acc[j], which took in `count` elements.
  void (*finish)(const void* acc, int64_t n, int64_t count, void* y);
  // Set where the tensors hold half or bfloat16; x and y above are then float.
  Load16 load;
  Store16 store;
};

struct ReduceKernels {
  ReduceKernel sum, mean, prod, max, min, norm, half_square_sum;  // the last one: L2Loss
};
struct Reductions {
  ReduceKernels of_float, of_half, of_bfloat16;
};
TW_CPU_DECLARE_ISA(Reductions, ReductionTable)

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_REDUCE_H_
