// MatMul, row by row; every element's sum runs over k in order.
#include "kernels/kernel.h"
#include "kernels/register.h"

namespace thalweg::fake {
namespace {

template <class T>
class MatMul : Kernel {
 public:
  explicit MatMul(const tw::Node& n) : Kernel(n), transpose_a_(n.b("transpose_a")), transpose_b_(n.b("transpose_b")) {}

  void operator()(tw::Frame frame, tw::In<T> a, tw::In<T> b, tw::Out<T> product) const {
    const int64_t depth = a.dim(transpose_a_ ? 0 : 1);
    Launch(frame.f, {a.v, b.v, product.v()}, [depth, ta = transpose_a_, tb = transpose_b_](std::vector<Array>& v) {
      const int64_t rows = v[2].dims[0], cols = v[2].dims[1];
      if (v[2].count == 0) return;  // the other size may be huge
      const T *x = v[0].as<T>(), *w = v[1].as<T>();
      std::vector<T> sums(static_cast<size_t>(cols));
      for (int64_t i = 0; i < rows; ++i) {
        sums.assign(sums.size(), T(0));
        for (int64_t k = 0; k < depth; ++k) {
          const T factor = x[ta ? k * rows + i : i * depth + k];
          for (int64_t j = 0; j < cols; ++j) sums[size_t(j)] += factor * w[tb ? j * depth + k : k * cols + j];
        }
        std::copy(sums.begin(), sums.end(), v[2].as<T>() + i * cols);
      }
    });
  }

 private:
  bool transpose_a_, transpose_b_;
};

}  // namespace

void register_matmul(tw::Plugin& p) { p.kernel<MatMul<float>, MatMul<double>>("MatMul @FAKE; capture_safe"); }

}  // namespace thalweg::fake
