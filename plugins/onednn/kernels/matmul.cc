// MatMul of float and, where the processor multiplies it, bfloat16. What the library would not make faster, the CPU plugin's own kernel
// computes.
#include "kernels/matmul.h"

#include "kernels/latest.h"
#include "kernels/plans.h"
#include "kernels/small_product.h"
#include "register.h"

namespace thalweg::onednn {
namespace {

class MatMul : public cpu::MatMul<float> {
  using Own = cpu::MatMul<float>;

 public:
  MatMul(const tw::Node& n, const Library& library) : Own(n), library_(library) {}

  void operator()(tw::Frame frame, tw::In<float> a, tw::In<float> b, tw::Out<float> c) const {
    const cpu::Factor fa = cpu::FactorOf(a.dims(), a.rank(), trans_a_, "a"), fb = cpu::FactorOf(b.dims(), b.rank(), trans_b_, "b");
    CheckSizes(fa, fb, c.dims(), c.rank());
    MatrixProduct<float> p = cpu::ProductOf<float>(fa, fb);
    const Api* api = Pays(p.m, p.n, p.k, library_) ? library_.Open() : nullptr;
    if (!api) return Own::operator()(frame, a, b, c);
    p.a = a.data();
    p.b = b.data();
    p.c = c.data();
    MultiplyMany(*api, frame.f, p, 1, [&](int64_t) { return p; });
  }

 private:
  const Library& library_;
};

class SmallMatMul : public cpu::MatMul<cpu::bfloat16> {
  using T = cpu::bfloat16;
  using Own = cpu::MatMul<T>;

 public:
  SmallMatMul(const tw::Node& n, const Library& library) : Own(n), library_(library) {}

  uint64_t scratch(const tw::Node& n) const {
    const tw_shape *a = n.node->shapes, *b = a + 1;
    const auto plan = PlanOf(cpu::FactorOf(a->dims, a->rank, trans_a_, "a"), cpu::FactorOf(b->dims, b->rank, trans_b_, "b"));
    return plan ? plan->scratch() : Own::scratch(n);
  }

  void operator()(tw::Frame frame, tw::In<T> a, tw::In<T> b, tw::Out<T> c) const {
    const cpu::Factor fa = cpu::FactorOf(a.dims(), a.rank(), trans_a_, "a"), fb = cpu::FactorOf(b.dims(), b.rank(), trans_b_, "b");
    CheckSizes(fa, fb, c.dims(), c.rank());
    const auto plan = PlanOf(fa, fb);
    if (!plan) return Own::operator()(frame, a, b, c);
    const cpu::Workspace work(frame.f, plan->scratch());
    plan->Run(frame.f, a.data(), b.data(), c.data(), work.data());
  }

 private:
  std::shared_ptr<const SmallProduct> PlanOf(const cpu::Factor& a, const cpu::Factor& b) const {
    const auto p = cpu::ProductOf<T>(a, b);
    const Api* api = Pays(p.m, p.n, p.k, library_) ? library_.Open() : nullptr;
    if (!api) return nullptr;
    const SmallProduct::Sizes sizes{p.m, p.n, p.k, p.trans_a, p.trans_b};
    return latest_.Of(sizes, [&] { return std::make_shared<const SmallProduct>(*api, sizes); });
  }

  const Library& library_;
  Latest<SmallProduct::Sizes, SmallProduct> latest_;
};

}  // namespace

void register_matmul(tw::Plugin& p, const Library& library) {
  AddKernel<MatMul>(p, "MatMul", library);
  if (MultipliesBfloat16()) AddKernel<SmallMatMul>(p, "MatMul", library);
}

}  // namespace thalweg::onednn
