/* The worker of third-party kernels: oneDNN, OpenBLAS, Eigen. usage: libraries_worker THREADS.
 * Environment variables set the threads of OpenMP and of OpenBLAS. */
#include "libraries_worker.h"

#include <stddef.h>

#include "worker.h"

typedef work (*make_product)(const product* p, const void* a, const void* b);

static work begin(make_product make, const char* argument, int* small) {
  const product p = product_parse(argument);
  *small = p.small;
  return make(&p, operand_create(p.m * p.k, p.small, 0), operand_create(p.k * p.n, p.small, 1));
}

static void time_it(work w) { worker_reply_time(w.call, w.state, 9, worker_calls(w.call, w.state), 1); }
static void sum_it(work w, int small) {
  w.call(w.state);
  worker_reply("%.17g", operand_sum(w.result, w.count, small));
}

#define PRODUCT(name)                                       \
  static void answer_##name(const char* argument) {         \
    int small;                                              \
    time_it(begin(name##_product, argument, &small));       \
  }                                                         \
  static void answer_##name##_sum(const char* argument) {   \
    int small;                                              \
    const work w = begin(name##_product, argument, &small); \
    sum_it(w, small);                                       \
  }
PRODUCT(sgemm)
PRODUCT(matmul)
PRODUCT(openblas)
PRODUCT(eigen)

static void answer_convolution(const char* argument) {
  const convolution c = convolution_parse(argument);
  time_it(onednn_convolution(&c));
}
static void answer_convolution_sum(const char* argument) {
  const convolution c = convolution_parse(argument);
  sum_it(onednn_convolution(&c), c.small);
}

int main(void) {
  static const worker_command commands[] = {
      {"sgemm", answer_sgemm},
      {"sgemm_sum", answer_sgemm_sum},
      {"matmul", answer_matmul},
      {"matmul_sum", answer_matmul_sum},
      {"openblas", answer_openblas},
      {"openblas_sum", answer_openblas_sum},
      {"eigen", answer_eigen},
      {"eigen_sum", answer_eigen_sum},
      {"convolution", answer_convolution},
      {"convolution_sum", answer_convolution_sum},
      {NULL, NULL},
  };
  worker_serve(commands);
  return 0;
}
