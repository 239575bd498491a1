// The kernel of MatMul. Floating-point products run on gemm.h, all others on plain loops.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_MATMUL_H_
#define THALWEG_PLUGINS_CPU_KERNELS_MATMUL_H_

#include "kernels/common/element.h"
#include "kernels/common/parallel.h"
#include "kernels/common/types.h"
#include "kernels/factor.h"
#include "kernels/slots.h"

namespace thalweg::cpu {

template <class T>
class MatMul {
 public:
  explicit MatMul(const tw::Node& n)
      : tables_(GemmTablesFor(n.host())), trans_a_(n.b("transpose_a")), trans_b_(n.b("transpose_b")), slots_(WorkerSlots()) {}

  uint64_t scratch(const tw::Node& n) const {
    if constexpr (!kIsFloat<T>)
      return 0;
    else
      return ProductScratch(ProductOf<T>(Of(n.node->shapes[0], trans_a_, "a"), Of(n.node->shapes[1], trans_b_, "b"))) * uint64_t(slots_);
  }

  void operator()(tw::Frame frame, tw::In<T> a, tw::In<T> b, tw::Out<T> c) const {
    const Factor fa = FactorOf(a.dims(), a.rank(), trans_a_, "a"), fb = FactorOf(b.dims(), b.rank(), trans_b_, "b");
    CheckSizes(fa, fb, c.dims(), c.rank());
    if constexpr (kIsFloat<T>) {
      MatrixProduct<T> p = ProductOf<T>(fa, fb);
      p.a = a.data();
      p.b = b.data();
      p.c = c.data();
      Workspace work(frame.f, ProductScratch(p) * uint64_t(slots_));
      Multiply(tables_, frame.f, p, slots_, work.data());
    } else {
      if (c.size() == 0) return;
      PlainProduct<T> p = PlainProductOf<T>(fa, fb, false, false);
      p.a = a.data();
      p.b = b.data();
      p.c = c.data();
      ParallelFor(frame.f, p.m, Work(1, p.n, p.k), [&](int64_t begin, int64_t end) { MultiplyRows(p, begin, end); });
    }
  }

 protected:
  static Factor Of(const tw_shape& s, bool transposed, const char* name) { return FactorOf(s.dims, s.rank, transposed, name); }

  GemmTables tables_;
  bool trans_a_, trans_b_;
  int slots_;
};

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_MATMUL_H_
