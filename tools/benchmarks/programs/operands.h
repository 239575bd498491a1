/* What contenders multiply: arrays of small multiples of 1/16, whose products and sums are exact, so that all must answer the same. */
#ifndef THALWEG_BENCHMARKS_OPERANDS_H
#define THALWEG_BENCHMARKS_OPERANDS_H
#include <stdint.h>

/* "M N K TRANSPOSE_A TRANSPOSE_B TYPE", TYPE: float or bfloat16. */
typedef struct product {
  int64_t m, n, k;
  int trans_a, trans_b;
  int small; /* bfloat16 */
} product;
product product_parse(const char* text);

/* "KIND N SIZE IN OUT WINDOW STRIDE PADDING TYPE": square images, channels last; KIND: forward, filter or input. */
typedef struct convolution {
  char kind[16];
  int64_t n, size, in, out, window, stride, padding;
  int small;
} convolution;
convolution convolution_parse(const char* text);
int64_t convolution_out_size(const convolution* c);

/* count elements, at an address that a cache line begins at; never freed. seed: another one, other numbers. */
void* operand_create(int64_t count, int small, int seed);
/* A sum in which each element has another weight. */
double operand_sum(const void* data, int64_t count, int small);

#endif
