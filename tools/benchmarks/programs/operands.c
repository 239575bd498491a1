#define _POSIX_C_SOURCE 200809L
#include "operands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker.h"

static int is_small(const char* type) {
  if (strcmp(type, "float") != 0 && strcmp(type, "bfloat16") != 0) worker_fail("no type '%s'", type);
  return type[0] == 'b';
}

product product_parse(const char* text) {
  product p;
  long m, n, k;
  char type[16];
  if (sscanf(text, "%ld %ld %ld %d %d %15s", &m, &n, &k, &p.trans_a, &p.trans_b, type) != 6) worker_fail("no product: '%s'", text);
  p.m = m, p.n = n, p.k = k;
  p.small = is_small(type);
  return p;
}

convolution convolution_parse(const char* text) {
  convolution c;
  long n, size, in, out, window, stride, padding;
  char type[16];
  if (sscanf(text, "%15s %ld %ld %ld %ld %ld %ld %ld %15s", c.kind, &n, &size, &in, &out, &window, &stride, &padding, type) != 9)
    worker_fail("no convolution: '%s'", text);
  c.n = n, c.size = size, c.in = in, c.out = out, c.window = window, c.stride = stride, c.padding = padding;
  c.small = is_small(type);
  return c;
}

int64_t convolution_out_size(const convolution* c) { return (c->size + 2 * c->padding - c->window) / c->stride + 1; }

void* operand_create(int64_t count, int small, int seed) {
  void* data;
  if (posix_memalign(&data, 64, (size_t)count * 4 + 64) != 0) worker_fail("out of memory for %ld elements", (long)count);
  for (int64_t i = 0; i < count; ++i) {
    const float value = (float)((i * 7 + seed * 5) % 17 - 8) / 16;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (small)
      ((uint16_t*)data)[i] = (uint16_t)(bits >> 16);
    else
      ((float*)data)[i] = value;
  }
  return data;
}

double operand_sum(const void* data, int64_t count, int small) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t bits = small ? (uint32_t)((const uint16_t*)data)[i] << 16 : ((const uint32_t*)data)[i];
    float value;
    memcpy(&value, &bits, sizeof value);
    sum += (double)value * (double)(i % 13 - 6);
  }
  return sum;
}
