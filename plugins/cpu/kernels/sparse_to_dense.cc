// SparseToDense: writes one value everywhere, then other values at their places, in order.
#include "kernels/common/slices.h"
#include "kernels/register.h"
#include "kernels/sparse_places.h"

namespace thalweg::cpu {
namespace {

class SparseToDense {
 public:
  explicit SparseToDense(const tw::Node& n) : validate_(n.b("validate_indices")) {}

  void operator()(tw::Frame f, tw::In<tw::Any> sparse_indices, tw::In<tw::Any> output_shape, tw::In<tw::Any> sparse_values,
                  tw::In<tw::Any> default_value, tw::Out<tw::Any> dense) const {
    const Ints dims = ReadInts(output_shape.v, "output_shape");
    const int64_t depth = sparse_indices.rank() > 1 ? sparse_indices.dim(1) : 1, n = sparse_indices.rank() > 0 ? sparse_indices.dim(0) : 1;
    if (depth != dims.n)
      Invalid("sparse_indices is " + DimsText(sparse_indices.v) + ", places along " + std::to_string(depth) +
              " axes, and output_shape has " + std::to_string(dims.n) + " sizes");
    if (sparse_values.rank() > 0 && sparse_values.dim(0) != n)
      Invalid("sparse_values has " + std::to_string(sparse_values.dim(0)) + " elements for " + std::to_string(n) + " places");
    WantSizes(dims.at, dims.n, "output_shape");
    const SparsePlaces places(sparse_indices.v, "sparse_indices", dims.at, dims.n);
    if (validate_) WantOrder(places);
    CheckMovable(default_value.v->dtype);
    Allocate(dense, dims.at, dims.n);
    FillRun(f.f, default_value.v, dense.v(), 0, int64_t(dense.size()));
    if (sparse_values.rank() > 0) return PutSlices(f.f, sparse_values.v, dense.v(), n, 1, places);
    const int64_t different = dims.n > 0 ? n : std::min<int64_t>(n, 1);  // without axes there is one place, however often it is named
    for (int64_t k = 0; k < different; ++k) FillRun(f.f, sparse_values.v, dense.v(), places(k), 1);
  }

 private:
  static void WantOrder(const SparsePlaces& places) {
    const std::optional<int64_t> at = places.FirstOutOfOrder(false);
    if (!at) return;
    const bool same = places.Compare(*at - 1, *at) == 0;
    Invalid(places.Text(*at) + (same ? " stands there twice" : " comes after " + places.Text(*at - 1)) +
            "; put them in order with SparseReorder, or set validate_indices to false");
  }

  const bool validate_;
};

}  // namespace

void register_sparse_to_dense(tw::Plugin& p) { p.kernel<SparseToDense>("SparseToDense @CPU"); }

}  // namespace thalweg::cpu
