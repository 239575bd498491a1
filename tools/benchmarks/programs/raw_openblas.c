/* OpenBLAS, loaded with dlopen: it exists if tools/setup ran with --peers. */
#include <dlfcn.h>
#include <stddef.h>

#include "libraries_worker.h"
#include "worker.h"

typedef void (*sgemm)(int order, int trans_a, int trans_b, int m, int n, int k, float alpha, const float* a, int lda, const float* b,
                      int ldb, float beta, float* c, int ldc);

static struct {
  product p;
  sgemm call;
  const float *a, *b;
  float* c;
} now;

static void multiply(void* state) {
  (void)state;
  const product* p = &now.p;
  const int m = (int)p->m, n = (int)p->n, k = (int)p->k, row_major = 101, plain = 111, turned = 112;
  now.call(row_major, p->trans_a ? turned : plain, p->trans_b ? turned : plain, m, n, k, 1, now.a, p->trans_a ? m : k, now.b,
           p->trans_b ? k : n, 0, now.c, n);
}

work openblas_product(const product* p, const void* a, const void* b) {
  void* library = dlopen("libopenblas.so.0", RTLD_NOW);
  if (!library) worker_fail("%s", dlerror());
  if (p->small) worker_fail("OpenBLAS has no bfloat16 here");
  *(void**)&now.call = dlsym(library, "cblas_sgemm");
  if (!now.call) worker_fail("libopenblas.so.0 has no cblas_sgemm");
  now.p = *p;
  now.a = a;
  now.b = b;
  now.c = operand_create(p->m * p->n, 0, 2);
  const work w = {multiply, NULL, now.c, p->m * p->n};
  return w;
}
