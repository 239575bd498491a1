// Eigen, compiled for this machine.
#include <Eigen/Dense>

extern "C" {
#include "libraries_worker.h"
#include "worker.h"
}

namespace {

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using In = Eigen::Map<const Matrix>;

struct {
  product p;
  const float *a, *b;
  float* c;
} now;

void Multiply(void*) {
  const product& p = now.p;
  const In a(now.a, p.trans_a ? p.k : p.m, p.trans_a ? p.m : p.k), b(now.b, p.trans_b ? p.n : p.k, p.trans_b ? p.k : p.n);
  Eigen::Map<Matrix> c(now.c, p.m, p.n);
  if (p.trans_a && p.trans_b)
    c.noalias() = a.transpose() * b.transpose();
  else if (p.trans_a)
    c.noalias() = a.transpose() * b;
  else if (p.trans_b)
    c.noalias() = a * b.transpose();
  else
    c.noalias() = a * b;
}

}  // namespace

work eigen_product(const product* p, const void* a, const void* b) {
  if (p->small) worker_fail("Eigen has no kernels of bfloat16 worth the name");
  now = {*p, static_cast<const float*>(a), static_cast<const float*>(b), static_cast<float*>(operand_create(p->m * p->n, 0, 2))};
  return {Multiply, nullptr, now.c, p->m * p->n};
}
