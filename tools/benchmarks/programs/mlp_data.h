/* The data of the MLP row: raw little-endian arrays in one folder, the same for every contender. */
#ifndef THALWEG_BENCHMARKS_MLP_DATA_H
#define THALWEG_BENCHMARKS_MLP_DATA_H
#include <stdint.h>

enum { kMlpBatch = 100, kMlpIn = 784, kMlpHidden = 100, kMlpOut = 10 };

typedef struct mlp_data {
  float x[kMlpBatch * kMlpIn];
  int32_t y[kMlpBatch];
  float w1[kMlpIn * kMlpHidden], b1[kMlpHidden];
  float w2[kMlpHidden * kMlpOut], b2[kMlpOut];
} mlp_data;

/* Reads x.f32, y.i32, w1.f32, b1.f32, w2.f32 and b2.f32 of `folder`. Fails the worker if one is
 * missing or has another size. */
void mlp_data_read(const char* folder, mlp_data* out_data);

#endif
