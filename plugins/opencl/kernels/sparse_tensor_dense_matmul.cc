// SparseTensorDenseMatMul. The host reads and checks the indices of the stored elements and sorts
// them by row. One task sums a row of the product, or several tasks sum some columns each.
#include <algorithm>

#include "kernels/register.h"
#include "kernels/segment.h"

namespace thalweg::opencl {
namespace {

class SparseMatMul {
 public:
  explicit SparseMatMul(const tw::Node& n)
      : adjoint_a_(n.b("adjoint_a")),
        adjoint_b_(n.b("adjoint_b")),
        kernel_(n, ProgramText({{"T", tw::dtype_text(n.type_out(0))}}, {"sparse_product.h"}), "sparse_product") {}

  void operator()(tw::Frame frame) const {
    const tw_frame* f = frame.f;
    const tw_view *values = f->in[1], *b = f->in[3];
    const Dims pairs = DimsOf(f->in[0]), sizes = Numbers(f->in[2]);
    if (pairs.size() != 2 || pairs[1] != 2 || values->rank != 1 || values->dims[0] != pairs[0])
      Invalid("a_indices is " + tw::text(pairs.data(), int32_t(pairs.size())) + " for a_values of shape " +
              tw::text(values->dims, values->rank) + "; it must have two columns, and a row for each value");
    if (sizes.size() != 2) Invalid("a_shape has " + std::to_string(sizes.size()) + " sizes; it must have 2");
    for (size_t i = 0; i < 2; ++i)
      if (sizes[i] < 0) Invalid("a_shape[" + std::to_string(i) + "] = " + tw::text(sizes[i]) + "; sizes must not be negative");
    if (b->rank != 2 || b->dims[adjoint_b_ ? 1 : 0] != sizes[adjoint_a_ ? 0 : 1])
      Invalid("inner dimensions differ: a_shape is " + tw::text(sizes.data(), 2) + (adjoint_a_ ? ", adjoint" : "") + ", b is " +
              tw::text(b->dims, b->rank) + (adjoint_b_ ? ", adjoint" : ""));
    const std::vector<int64_t> indices = Numbers(f->in[0]);
    Check(indices, sizes);
    const Dims dims = {sizes[adjoint_a_ ? 1 : 0], b->dims[adjoint_b_ ? 0 : 1]};
    Allocate(f, dims);
    if (Count(dims) > 0) Multiply(f, indices, dims);
  }

 private:
  static void Check(const std::vector<int64_t>& indices, const Dims& sizes) {
    for (size_t k = 0; k < indices.size(); ++k)
      if (indices[k] < 0 || indices[k] >= sizes[k % 2])
        Invalid("a_indices[" + std::to_string(k / 2) + ", " + std::to_string(k % 2) + "] = " + tw::text(indices[k]) + " is not in [0, " +
                tw::text(sizes[k % 2]) + "), the size of axis " + std::to_string(k % 2) + " of a_shape " + tw::text(sizes.data(), 2));
  }

  void Multiply(const tw_frame* f, const std::vector<int64_t>& indices, const Dims& dims) const {
    std::vector<int64_t> rows, at;
    for (size_t k = adjoint_a_ ? 1 : 0; k < indices.size(); k += 2) rows.push_back(indices[k]);
    const Members members(rows, dims[0]);
    for (int64_t e : members.order) at.push_back(indices[size_t(2 * e) + (adjoint_a_ ? 0 : 1)]);
    const Temporary order(kernel_.device(), members.order), columns(kernel_.device(), at), starts(kernel_.device(), members.starts);
    const tw_view* b = f->in[3];
    const Size n = dims[1], row = adjoint_b_ ? 1 : n, column = adjoint_b_ ? b->dims[1] : 1;
    const Size wide = kernel_.device().blocked() ? 64 : 1, blocks = (n + wide - 1) / wide;
    kernel_.RunTasks(f, dims[0] * blocks, (Size(at.size()) / dims[0] + 1) * std::min(n, wide), At(f->in[1]), order.place(), columns.place(),
                     starts.place(), At(b), At(f->out[0]), Size(dims[0]), n, row, column);
  }

  const bool adjoint_a_, adjoint_b_;
  Kernel kernel_;
};

}  // namespace

void register_sparse_tensor_dense_matmul(tw::Plugin& p) {
  for (const std::string t : {"float", "double", "half", "bfloat16", "int32", "int64"})
    for (const std::string i : {"int32", "int64"})
      p.kernel<SparseMatMul>("SparseTensorDenseMatMul(" + i + ", " + t + ", int64, " + t + " -> " + t +
                             ") @OPENCL; host a_indices a_shape");
}

}  // namespace thalweg::opencl
