// MatMul of float matrices, either of them transposed. See matmul.cl.
#include "kernels/kernel.h"
#include "kernels/register.h"

namespace thalweg::opencl {
namespace {

class MatMul {
 public:
  explicit MatMul(const tw::Node& n) : transpose_a_(n.b("transpose_a")), transpose_b_(n.b("transpose_b")), kernel_(n, "matmul") {}

  void operator()(tw::In<float> a, tw::In<float> b, tw::Out<float> y, tw::Frame frame) const {
    if (y.size() == 0) return;
    const cl_ulong m = cl_ulong(y.dim(0)), n = cl_ulong(y.dim(1)), depth = cl_ulong(a.dim(transpose_a_ ? 0 : 1));
    const cl_ulong a_row = transpose_a_ ? 1 : depth, a_col = transpose_a_ ? m : 1;
    const cl_ulong b_row = transpose_b_ ? 1 : n, b_col = transpose_b_ ? depth : 1;
    const Tile& t = kernel_.device().tile();
    const auto groups = [](cl_ulong size, cl_ulong tile) { return (size + tile - 1) / tile; };
    const Range items{groups(n, t.group * t.width) * t.group, groups(m, t.group * t.rows) * t.group};
    kernel_.Run(frame.f, items, {t.group, t.group}, a.v, b.v, y.v(), m, n, depth, a_row, a_col, b_row, b_col);
  }

 private:
  bool transpose_a_, transpose_b_;
  Kernel kernel_;
};

}  // namespace

void register_matmul(tw::Plugin& p) { p.kernel<MatMul>("MatMul @OPENCL"); }

}  // namespace thalweg::opencl
