/* The operands of all contenders: arrays of small multiples of 1/16, whose products and sums are
 * exact, so that all results must be equal. */
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

/* Returns `count` elements, aligned to a cache line; never freed. Each seed gives other numbers. */
void* operand_create(int64_t count, int small, int seed);
/* Returns a sum in which each element has a different weight. */
double operand_sum(const void* data, int64_t count, int small);

#endif
