// Loops over rows of floats that gain from their own instruction set: activations, bias, softmax,
// losses. Built once per set in vector_isa.cc and reached through a table. The per-set sources
// include this header, so it holds plain declarations only. The value of an element depends neither
// on where a caller cuts rows nor on the other rows. y may be x unless a line says otherwise.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_VECTOR_H_
#define THALWEG_PLUGINS_CPU_KERNELS_VECTOR_H_

#include <stdint.h>

#include "kernels/common/isa.h"

namespace thalweg::cpu {

struct VectorTable {
  // NaN stays NaN.
  void (*relu)(const float* x, float* y, int64_t n);
  void (*relu6)(const float* x, float* y, int64_t n);
  // y = dy where 0 < x (and x < 6), else 0; y may be dy or x.
  void (*relu_grad)(const float* dy, const float* x, float* y, int64_t n);
  void (*relu6_grad)(const float* dy, const float* x, float* y, int64_t n);

  // y[r, c] = x[r, c] + bias[c].
  void (*add_bias)(const float* x, const float* bias, float* y, int64_t rows, int64_t columns);
  // sum[c] += x[r, c], rows in order.
  void (*sum_rows)(const float* x, float* sum, int64_t rows, int64_t columns);
  // Returns the sum of n elements, added in an order that depends only on n.
  float (*sum)(const float* x, int64_t n);

  // y = x - max of the row.
  void (*shift_rows)(const float* x, float* y, int64_t rows, int64_t columns);
  // y = x / sum of the row.
  void (*normalise_rows)(const float* x, float* y, int64_t rows, int64_t columns);
  // sums[r] = sum of row r.
  void (*row_sums)(const float* x, float* sums, int64_t rows, int64_t columns);
  // y[r, c] = x[r, c] - shift[r].
  void (*subtract_column)(const float* x, const float* shift, float* y, int64_t rows, int64_t columns);

  // weights[r] = sum of the row's labels, dots[r] = sum of labels * x. If a label is 0, its x does
  // not count, even if infinite.
  void (*label_sums)(const float* x, const float* labels, float* weights, float* dots, int64_t rows, int64_t columns);
  // y[r, c] = x[r, c] / sums[r] - labels[r, c].
  void (*softmax_less_labels)(const float* x, const float* sums, const float* labels, float* y, int64_t rows, int64_t columns);

  // Convert half and bfloat16 to float and back, rounding to nearest, ties to even.
  void (*load_half)(const uint16_t* x, float* y, int64_t n);
  void (*store_half)(const float* x, uint16_t* y, int64_t n);
  void (*load_bfloat16)(const uint16_t* x, float* y, int64_t n);
  void (*store_bfloat16)(const float* x, uint16_t* y, int64_t n);
};

TW_CPU_DECLARE_ISA(VectorTable, Vectors)

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_VECTOR_H_
