/* The parts of the worker of third-party kernels. Each computes one product or convolution into
 * its own array. */
#ifndef THALWEG_BENCHMARKS_LIBRARIES_WORKER_H
#define THALWEG_BENCHMARKS_LIBRARIES_WORKER_H
#include "operands.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The timed work: one call of call(state); the result has `count` elements. */
typedef struct work {
  void (*call)(void* state);
  void* state;
  void* result;
  int64_t count;
} work;

work sgemm_product(const product* p, const void* a, const void* b);    /* raw_onednn.c: the function of BLAS */
work matmul_product(const product* p, const void* a, const void* b);   /* the primitive, on plain matrices */
work onednn_convolution(const convolution* c);                         /* channels last; weights reordered in advance */
work openblas_product(const product* p, const void* a, const void* b); /* raw_openblas.c */
work eigen_product(const product* p, const void* a, const void* b);    /* raw_eigen.cc */

#ifdef __cplusplus
}
#endif
#endif
