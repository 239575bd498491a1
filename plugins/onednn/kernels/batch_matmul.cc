// BatchMatMul, BatchMatMulV2 and BatchMatMulV3 of float. If the library would not be faster, the
// CPU plugin's own kernel computes the product.
#include "kernels/batch_matmul.h"

#include "kernels/product.h"
#include "register.h"

namespace thalweg::onednn {
namespace {

class BatchMatMul : public cpu::BatchMatMul<float> {
  using Own = cpu::BatchMatMul<float>;

 public:
  BatchMatMul(const tw::Node& n, const Library& library) : Own(n), library_(library) {}

  void operator()(tw::Frame frame, tw::In<float> x, tw::In<float> y, tw::Out<float> z) const {
    Run(frame, x.v, x.data(), y.v, y.data(), z);
  }

  void Run(tw::Frame frame, const tw_view* xv, const float* x, const tw_view* yv, const float* y, tw::Out<float> z) const {
    const cpu::Factor fx = cpu::FactorOf(xv->dims, xv->rank, adj_x_, "x"), fy = cpu::FactorOf(yv->dims, yv->rank, adj_y_, "y");
    CheckSizes(fx, fy, z.dims(), z.rank());
    cpu::CheckBatch(xv->dims, xv->rank, z.dims(), z.rank(), "x");
    cpu::CheckBatch(yv->dims, yv->rank, z.dims(), z.rank(), "y");
    MatrixProduct<float> shape = cpu::ProductOf<float>(fx, fy);
    const bool flat = Flatten(&shape, cpu::Matrices(xv->dims, xv->rank), cpu::Matrices(yv->dims, yv->rank));
    const Api* api = z.size() > 0 && Pays(shape.m, shape.n, shape.k, library_) ? library_.Open() : nullptr;
    if (!api) return Own::Run(frame, xv, x, yv, y, z);
    MultiplyMany(*api, frame.f, shape, flat ? 1 : cpu::Matrices(z.dims(), z.rank()), [&](int64_t i) {
      MatrixProduct<float> p = shape;
      p.a = x + cpu::FactorIndex(i, z.dims(), z.rank(), xv->dims, xv->rank) * fx.rows * fx.columns;
      p.b = y + cpu::FactorIndex(i, z.dims(), z.rank(), yv->dims, yv->rank) * fy.rows * fy.columns;
      p.c = z.data() + i * p.m * p.n;
      return p;
    });
  }

 private:
  const Library& library_;
};

}  // namespace

void register_batch_matmul(tw::Plugin& p, const Library& library) {
  AddKernel<BatchMatMul>(p, "BatchMatMul", library);
  AddKernel<BatchMatMul>(p, "BatchMatMulV2", library);
  AddKernel<cpu::BatchMatMulV3<float, BatchMatMul>>(p, "BatchMatMulV3", library);
}

}  // namespace thalweg::onednn
