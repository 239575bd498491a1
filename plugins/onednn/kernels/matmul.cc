// MatMul of float and, if the processor has instructions for it, bfloat16. If the library would not
// be faster, the CPU plugin's own kernel computes the product.
#include "kernels/matmul.h"

#include "kernels/latest.h"
#include "kernels/plans.h"
#include "kernels/primitive_product.h"
#include "register.h"

namespace thalweg::onednn {
namespace {

// The primitives for the sizes that one node has seen.
template <class T>
class Primitives {
 public:
  explicit Primitives(const Library& library) : library_(library) {}

  // Returns NULL if no primitive is faster.
  std::shared_ptr<const PrimitiveProduct> Of(const MatrixProduct<T>& p) const {
    const Api* api = Wants(p) && Pays(p.m, p.n, p.k, library_) ? library_.Open() : nullptr;
    if (!api) return nullptr;
    const PrimitiveProduct::Sizes sizes{p.m, p.n, p.k, p.trans_a, p.trans_b, kType<T>};
    return latest_.Of(sizes, [&] { return std::make_shared<const PrimitiveProduct>(*api, sizes); });
  }

 private:
  // sgemm reads and writes all of c for each few hundred of k; the primitive keeps its sums.
  static bool Wants(const MatrixProduct<T>& p) {
    constexpr int64_t kDeep = 2048;
    return !std::is_same_v<T, float> || (p.k >= kDeep && p.k >= 8 * std::max(p.m, p.n));
  }

  const Library& library_;
  Latest<PrimitiveProduct::Sizes, PrimitiveProduct> latest_;
};

template <class T>
class MatMul : public cpu::MatMul<T> {
  using Own = cpu::MatMul<T>;

 public:
  MatMul(const tw::Node& n, const Library& library) : Own(n), library_(library), primitives_(library) {}

  uint64_t scratch(const tw::Node& n) const {
    const tw_shape *a = n.node->shapes, *b = a + 1;
    const auto primitive = primitives_.Of(
        cpu::ProductOf<T>(cpu::FactorOf(a->dims, a->rank, this->trans_a_, "a"), cpu::FactorOf(b->dims, b->rank, this->trans_b_, "b")));
    return primitive ? primitive->scratch() : Own::scratch(n);
  }

  void operator()(tw::Frame frame, tw::In<T> a, tw::In<T> b, tw::Out<T> c) const {
    const cpu::Factor fa = cpu::FactorOf(a.dims(), a.rank(), this->trans_a_, "a"),
                      fb = cpu::FactorOf(b.dims(), b.rank(), this->trans_b_, "b");
    CheckSizes(fa, fb, c.dims(), c.rank());
    MatrixProduct<T> p = cpu::ProductOf<T>(fa, fb);
    if (const auto primitive = primitives_.Of(p)) {
      const cpu::Workspace work(frame.f, primitive->scratch());
      return primitive->Run(frame.f, a.data(), b.data(), c.data(), work.data());
    }
    if constexpr (std::is_same_v<T, float>) {
      if (const Api* api = Pays(p.m, p.n, p.k, library_) ? library_.Open() : nullptr) {
        p.a = a.data();
        p.b = b.data();
        p.c = c.data();
        return MultiplyMany(*api, frame.f, p, 1, [&](int64_t) { return p; });
      }
    }
    Own::operator()(frame, a, b, c);
  }

 private:
  const Library& library_;
  Primitives<T> primitives_;
};

}  // namespace

void register_matmul(tw::Plugin& p, const Library& library) {
  AddKernel<MatMul<float>>(p, "MatMul", library);
  if (MultipliesBfloat16()) AddKernel<MatMul<cpu::bfloat16>>(p, "MatMul", library);
}

}  // namespace thalweg::onednn
