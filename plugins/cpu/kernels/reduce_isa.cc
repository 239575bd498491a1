// Reductions of float, once per instruction set. A run of a row is summed or multiplied in float,
// and the runs are combined in double. This is as fast as float, and the error does not grow with
// the size of the tensor.
#include "kernels/reduce_loops.h"

namespace thalweg::cpu::THALWEG_ISA {

void LoadHalf(const uint16_t* x, float* y, int64_t n);
void StoreHalf(const float* x, uint16_t* y, int64_t n);
void LoadBfloat16(const uint16_t* x, float* y, int64_t n);
void StoreBfloat16(const float* x, uint16_t* y, int64_t n);

namespace {

constexpr ReduceKernels kFloat = [] {
  using Sums = ReduceLoops<float, double, Summing<double>, float, Summing<float>>;
  using Products = ReduceLoops<float, double, Multiplying<double>>;
  using Squares = ReduceLoops<float, double, SummingSquares<double>, float, SummingSquares<float>>;
  using Norms = ReduceLoops<float, double, SummingSquares<double>>;  // in float, squares of large numbers would overflow
  using Max = ReduceLoops<float, float, Largest<float>>;
  using Min = ReduceLoops<float, float, Smallest<float>>;
  return ReduceKernels{
      .sum = MakeReduce<float, double, Sums>(),
      .mean = MakeReduce<float, double, Sums>(FinishMean<float, double>),
      .prod = MakeReduce<float, double, Products>(),
      .max = MakeReduce<float, float, Max>(),
      .min = MakeReduce<float, float, Min>(),
      .norm = MakeReduce<float, double, Norms>(FinishRoot<float, double>),
      .half_square_sum = MakeReduce<float, double, Squares>(FinishHalf<float, double>),
  };
}();

constexpr ReduceKernels Of16(Load16 load, Store16 store) {
  ReduceKernels all = kFloat;
  ReduceKernel* const parts[] = {&all.sum, &all.mean, &all.prod, &all.max, &all.min, &all.norm, &all.half_square_sum};
  for (ReduceKernel* k : parts) {
    k->x_bytes = k->y_bytes = 2;
    k->load = load;
    k->store = store;
  }
  return all;
}

}  // namespace

const Reductions& ReductionTable() {
  static constexpr Reductions kTable = {kFloat, Of16(LoadHalf, StoreHalf), Of16(LoadBfloat16, StoreBfloat16)};
  return kTable;
}

}  // namespace thalweg::cpu::THALWEG_ISA
